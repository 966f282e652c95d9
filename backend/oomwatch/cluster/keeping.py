"""What a replica does once a second to keep in step with the others, and how it takes over what another spoke for."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from oomwatch.cluster.abroad import Abroad
from oomwatch.cluster.chorus import Chorus
from oomwatch.cluster.follower import Follower
from oomwatch.cluster.leadership import Leadership
from oomwatch.cluster.members import Members
from oomwatch.cluster.rolls import Rolls
from oomwatch.cluster.world import Line
from oomwatch.service.service import Service
from oomwatch.tasks import rung

TICK_SECONDS = 1.0
POLL_SECONDS = 2.0
UNREAD_SECONDS = 10.0  # where the database cannot be read for so long, what came to us is said all the same
ALONE_SECONDS = 6.0  # each asks the database every two seconds, and waits for an answer for some
GREET_SECONDS = 60.0  # in which each agent's hello is told again: one may have got lost

logger = logging.getLogger(__name__)


class Works(NamedTuple):
    """What keeps in step. `ails`: whether the database cannot be written from here."""

    me: str
    bus: Line
    members: Members
    leadership: Leadership
    chorus: Chorus
    abroad: Abroad
    follower: Follower
    rolls: Rolls
    nudged: asyncio.Event
    ails: Callable[[], bool]
    pulse: Callable[[], None]
    greet_for: Callable[[str], None]


class Keeping:
    """Two tasks. `steady` is a clock that nobody sets."""

    def __init__(self, works: Works, service: Service, steady: Callable[[], float]) -> None:
        self._works = works
        self._service = service
        self._steady = steady
        self._ticked_at = steady()
        self._alive: tuple[str, ...] = (works.me,)
        self._hellos: Iterator[str] = iter(())
        self._unread_since: float | None = None
        self._alone_since: float | None = None

    # ------------------------------------------------------------ once a second

    async def tick_for_ever(self) -> None:
        while True:
            with self._service.defects.going_on("keeping in step with the other replicas"):
                self.tick()
            await asyncio.sleep(TICK_SECONDS)

    def tick(self) -> None:
        """Once."""
        now, works = self._steady(), self._works
        elapsed, self._ticked_at = now - self._ticked_at, now
        works.members.can_see(can_see=works.bus.is_connected or works.rolls.problem is None, now=now)
        self._note_the_living(now)
        if not works.bus.is_connected:
            self._service.excuse(self._nodes_elsewhere(), elapsed)
        works.chorus.review(self._service.clock())
        others_do_better = works.ails() and self._others_can_store()
        self._alone_since = (self._alone_since or now) if others_do_better else None
        works.pulse()
        self._greet_for_some()

    def _note_the_living(self, now: float) -> None:
        alive = self._works.members.alive(now)
        for replica in [one for one in self._alive if one not in alive]:
            logger.warning("replica %s is gone", replica)
        self._alive = alive
        self._works.abroad.keep_those_of(alive)

    def _nodes_elsewhere(self) -> list[str]:
        find = self._service.roster.find
        return [
            node for node in self._service.engine.fleet.nodes if (session := find(node)) is None or not session.is_here
        ]

    def _greet_for_some(self) -> None:
        """Of a thousand agents seventeen a second."""
        here = [session.node for session in self._service.roster if session.peer is not None]
        some = list(islice(self._hellos, len(here) // int(GREET_SECONDS) + 1))
        if not some:
            self._hellos = iter(here)
        for node in some:
            self._works.greet_for(node)

    # ------------------------------------------------------------ what the others said

    async def follow_for_ever(self) -> None:
        """Read what is new in the database, and speak for what came to us once that is known."""
        while True:
            self._works.nudged.clear()
            await self.follow()
            await rung(self._works.nudged, self._rest_seconds())

    async def follow(self) -> None:
        """Once. What came to us before it is read of is ours to say after it."""
        due = self._works.chorus.due()
        if await self._catch_up():
            await self._let_go_of_the_moved()
            self._speak(due)
        elif self._unread_since is not None and self._steady() - self._unread_since > UNREAD_SECONDS:
            self._speak(self._works.chorus.due(UNREAD_SECONDS))

    async def _let_go_of_the_moved(self) -> None:
        """Without NATS, that an agent has gone to another replica is told by the database alone, to which it stores."""
        works = self._works
        if works.bus.is_connected:
            return
        gone = {one.node: one.heard_at for one in self._service.roster if one.is_here and one.peer is None}
        try:
            moved = await works.follower.heard_elsewhere(gone)
        except Exception as error:  # as for what the others said, which was read a moment ago
            logger.debug("where agents are now cannot be read: %s", error)
            return
        for node in moved:
            works.abroad.let_go(node)

    def _rest_seconds(self) -> float:
        return TICK_SECONDS / 2 if self._works.chorus.is_waiting else POLL_SECONDS

    async def _catch_up(self) -> bool:
        try:
            await self._works.follower.catch_up()
        except Exception as error:  # readyz and the journal say what ails the database
            if self._unread_since is None:
                self._unread_since = self._steady()
                logger.warning("what the other replicas said cannot be read: %s", error)
            return False
        self._unread_since = None
        return True

    def _speak(self, homes: Sequence[str]) -> None:
        """For homes that came to us, and of those that are ours again what nobody has said: a home may come and go
        within a second, and each of two replicas take it for the other's."""
        if not homes and not self._works.chorus.has_overdue(self._service.clock()):
            return
        with self._service.defects.judging("going on with what another replica spoke for"):
            here = {one.id for one in self._service.engine.episodes()}
            found, orphans = self._works.chorus.take(homes, self._service.board.open(), here)
            self._service.speak(found, orphans)

    # ------------------------------------------------------------ how it fares

    def problems(self) -> list[str]:
        """What is degraded, in sentences; none of it keeps this replica from its work."""
        found = []
        if self._works.bus.problem is not None:
            why = self._works.bus.problem
            found.append(f"degraded: no NATS ({why}); each replica knows the readings of its own agents only")
        if self._unread_since is not None:
            found.append("degraded: what the other replicas said cannot be read from the database")
        now = self._steady()
        if self._works.leadership.leader() is None:
            found.append("degraded: no replica leads at the moment; messages wait")
        for other, seconds in self._works.members.clocks_off(now):
            found.append(f"degraded: the clock of replica {other} differs from this one's by {seconds:+.1f} s; use NTP")
        return found

    @property
    def is_cut_off(self) -> bool:
        """Whether we alone cannot write to the database, and it is not that the others have yet to notice."""
        return self._alone_since is not None and self._steady() - self._alone_since > ALONE_SECONDS

    def _others_can_store(self) -> bool:
        alive = self._works.members.alive(self._steady())
        return any(not self._works.members.ails(one) for one in alive if one != self._works.me)
