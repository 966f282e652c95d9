"""What we missed of other replicas' agents, as after a NATS that was away: read from the database, in its place.

A node's messages are numbered. Where numbers are missing, and some seconds with them, what comes then is held until its
door has had the time to store what we missed; that is read, and what was held is taken after it, so that all of a node
arrives in its order, and windows are whole again. Its door judges it meanwhile, and speaks.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import merge
from typing import Protocol

from oomwatch import wire
from oomwatch.core.noderecord import NodeRecord
from oomwatch.service.journal import Call
from oomwatch.service.reception import Reception
from oomwatch.service.service import Service
from oomwatch.service.sessions import Numbered, Session

# As after a restart (web/restart.py): what the engine looks back on, and of a large fleet less.
BACK_SECONDS = 900.0
SAMPLES_MAX = 20_000
AT_ONCE = 200  # some 20 ms, between which others get their turn
MARGIN_SECONDS = 2.0
LOOK_SECONDS = 1.0

logger = logging.getLogger(__name__)


class History(Protocol):
    """What is read of the store. The methods block."""

    def samples_in_order(self, start: float, end: float, nodes: Collection[str]) -> Iterator[tuple[str, wire.Sample]]:
        """(node, sample) of these nodes, in the order of time."""
        ...

    def recent_events(self, since: float, until: float) -> Iterator[tuple[str, wire.Event]]:
        """(node, event) of all nodes, in the order of time."""
        ...


class Gap:
    """Of one node. `since`: its last reading that we have, in Unix seconds."""

    def __init__(self, session: Session, since: float, noticed_at: float) -> None:
        self.session = session
        self.since = since
        self.noticed_at = noticed_at
        self.held: list[tuple[wire.AgentMessage, float]] = []  # and when its door received each
        self.until = float("inf")  # what we have again, from here on

    def lacks(self, stored: wire.Sample | wire.Event) -> bool:
        """Whether it was missed. A line may tell of the moment of the last reading, and have come after it."""
        begins = self.since < stored.at or (self.since == stored.at and isinstance(stored, wire.Event))
        return begins and stored.at < self.until

    def hold(self, message: wire.AgentMessage, received_at: float) -> None:
        self.held.append((message, received_at))
        if not isinstance(message, wire.Hello):
            self.until = min(self.until, message.at)


class Gaps:
    """`stored_within`: after how many seconds a door has stored what it heard; `steady` is a clock that nobody sets."""

    def __init__(
        self, history: History, call: Call, service: Service, stored_within: float, steady: Callable[[], float]
    ) -> None:
        self._history = history
        self._call = call
        self._service = service
        self._reception: Reception = service.reception
        self._wait_seconds = stored_within + MARGIN_SECONDS
        self._steady = steady
        self._open: dict[str, Gap] = {}

    def take(self, session: Session, message: wire.AgentMessage, received_at: float) -> None:
        """What an agent said to another replica: take it, or hold it until what is missing before it is read."""
        gap = self._open.get(session.node)
        if gap is not None and gap.session is not session:  # the agent was started again
            self._close(session.node, gap)
            gap = None
        record = self._service.engine.fleet.nodes.get(session.node)
        if gap is None and record is not None and not isinstance(message, wire.Hello):
            gap = self._noticed(session, message, record)
        if gap is None:
            self._reception.take_from_afar(session, message, received_at)
        else:
            session.heard_at = max(session.heard_at, received_at)
            gap.hold(message, received_at)

    def _noticed(self, session: Session, message: Numbered, record: NodeRecord) -> Gap | None:
        since = max(record.host_at, record.torch_at)
        if message.seq <= session.processed_seq + 1 or message.at - since <= record.stale_after_seconds:
            return None
        gap = self._open[session.node] = Gap(session, since, self._steady())
        return gap

    async def fill_for_ever(self) -> None:
        """Look every second, until cancelled."""
        while True:
            with self._service.defects.going_on("filling in what was missed"):
                await self.fill()
            await asyncio.sleep(LOOK_SECONDS)

    async def fill(self) -> None:
        """Read what was missed long enough ago to be stored, and go on with what was held."""
        due = {node: gap for node, gap in self._open.items() if self._steady() - gap.noticed_at >= self._wait_seconds}
        if not due:
            return
        try:
            missed = await self._call(self._read, due)
        except Exception as error:  # readyz says what ails the database; the windows have a hole, and it goes on
            logger.warning("what was missed of %d nodes cannot be read: %s", len(due), error)
            missed = []
        for begin in range(0, len(missed), AT_ONCE):
            self._recall(missed[begin : begin + AT_ONCE])
            await asyncio.sleep(0)
        for node, gap in due.items():
            if self._open.get(node) is gap:
                self._close(node, gap)

    def _read(self, due: Mapping[str, Gap]) -> list[tuple[str, wire.Sample | wire.Event]]:
        until = max(gap.until for gap in due.values())
        since = max(min(gap.since for gap in due.values()), until - min(BACK_SECONDS, SAMPLES_MAX / len(due)))
        samples = self._history.samples_in_order(since, until, list(due))
        events = (told for told in self._history.recent_events(since, until) if told[0] in due)
        found: Iterator[tuple[str, wire.Sample | wire.Event]] = merge(samples, events, key=lambda told: told[1].at)
        return [(node, one) for node, one in found if due[node].lacks(one)]

    def _recall(self, missed: Sequence[tuple[str, wire.Sample | wire.Event]]) -> None:
        nodes = self._service.engine.fleet.nodes
        with self._service.defects.judging("taking in what was missed"):
            known = [(node, one) for node, one in missed if node in nodes]
            self._service.recall(known, {node: nodes[node].heard_at for node, _ in known})

    def _close(self, node: str, gap: Gap) -> None:
        del self._open[node]
        for message, received_at in gap.held:
            self._reception.take_from_afar(gap.session, message, received_at)
