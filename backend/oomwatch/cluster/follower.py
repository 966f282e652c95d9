"""Reads what the others have said, silences, and which nodes are gone for good, from the database that all share."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from oomwatch import wire
from oomwatch.cluster.chorus import Chorus
from oomwatch.service.journal import Call
from oomwatch.service.service import Service

AT_ONCE = 1000
CLOCKS_APART_SECONDS = 2.0  # of replicas whose clocks agree as they should
SILENCES_SECONDS = 60.0  # one that was ended so long ago is looked for among those in force


class Truth(Protocol):
    """What is read of the store, where none becomes visible before one with a lower number. The methods block."""

    def transitions_since(self, seq: int, *, limit: int = AT_ONCE) -> Sequence[tuple[int, wire.Transition]]:
        """Those with a higher number, by their numbers."""
        ...

    def silences(self, ending_after: float) -> Sequence[wire.Silence]: ...

    def retired_nodes(self) -> Sequence[str]:
        """Of which a person said that they are gone for good."""
        ...

    def last_seen(self, names: Collection[str]) -> Mapping[str, float]:
        """When each of these nodes was heard last, by whichever server; Unix seconds of that one's clock."""
        ...


class Follower:
    """`call` runs a blocking method elsewhere; `seq` is the last number there was when the service was restored."""

    def __init__(self, truth: Truth, call: Call, chorus: Chorus, service: Service, seq: int) -> None:
        self._truth = truth
        self._call = call
        self._chorus = chorus
        self._service = service
        self._seq = seq
        self.read_total = 0

    async def catch_up(self) -> None:
        """Take in all that is new. Raises what the store raises."""
        there_is_more = True
        while there_is_more:
            rows = await self._call(self._since, self._seq)
            news = self._chorus.news(word for _, word in rows)
            if news:
                self.read_total += len(news)
                self._service.follow(news)
            self._seq = rows[-1][0] if rows else self._seq
            there_is_more = len(rows) == AT_ONCE
        await self._read_silences()
        for node in await self._call(self._truth.retired_nodes):
            self._service.retire_quietly(node)

    async def heard_elsewhere(self, heard_at: Mapping[str, float]) -> list[str]:
        """Of these nodes, each with when it was heard here last, those that another server has heard since."""
        if not heard_at:
            return []
        seen: Mapping[str, float] = await self._call(self._truth.last_seen, list(heard_at))
        return [node for node, at in seen.items() if at > heard_at[node] + CLOCKS_APART_SECONDS]

    def _since(self, seq: int) -> Sequence[tuple[int, wire.Transition]]:
        return self._truth.transitions_since(seq, limit=AT_ONCE)

    async def _read_silences(self) -> None:
        now = self._service.clock()
        stored: Sequence[wire.Silence] = await self._call(self._truth.silences, now - SILENCES_SECONDS)
        known = {one.id: one for one in self._service.attention.silences()}
        changed = [one for one in stored if known.get(one.id) != one and (one.id in known or one.ends_at > now)]
        if changed:
            self._service.attention.put_silences(changed)
