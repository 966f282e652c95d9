"""This server as one of several: what it hears of the others, what it tells them, and what is done once a second.

    door: agent -> reception -> journal -> crier -> NATS -> abroad -> the others' reception -> their engines
    ours: engine -> chorus -> journal -> database -> told -> nudge over NATS -> the others' followers -> their boards

`web/clustered.py` puts the parts together.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from oomwatch import wire
from oomwatch.cluster.abroad import Abroad, Crier
from oomwatch.cluster.bus import Bus
from oomwatch.cluster.chorus import Chorus
from oomwatch.cluster.envelope import (
    Asked,
    Envelope,
    Gone,
    Left,
    Pulse,
    Retired,
    Retried,
    Said,
    Stored,
    Unstored,
)
from oomwatch.cluster.follower import Follower
from oomwatch.cluster.leadership import Leadership
from oomwatch.cluster.members import Members, Pulsed
from oomwatch.cluster.rolls import Rolls
from oomwatch.service.service import Service
from oomwatch.tasks import rung

TICK_SECONDS = 1.0
PAUSE_SECONDS = 4.0  # who stands still for longer may have been taken for dead
POLL_SECONDS = 2.0
UNREAD_SECONDS = 10.0  # where the database cannot be read for so long, what came to us is said all the same
GREET_SECONDS = 60.0  # in which each agent's hello is told again: one may have got lost

logger = logging.getLogger(__name__)

Notices = Callable[[], Sequence[wire.ChannelState]]


class Replica:
    """`channels` gives how they fare, `hear_channels` is told how they fare at the leader, `retry` tries one again."""

    def __init__(
        self,
        me: str,
        address: str,
        service: Service,
        members: Members,
        chorus: Chorus,
        *,
        channels: Notices,
        hear_channels: Callable[[Sequence[wire.ChannelState]], None],
        retry: Callable[[str], None],
        steady: Callable[[], float],
    ) -> None:
        self.me = me
        self.address = address
        self.members = members
        self.chorus = chorus
        self.bus: Bus
        self.follower: Follower
        self.leadership: Leadership
        self.rolls: Rolls
        self.crier: Crier
        self.abroad: Abroad
        self._service = service
        self._channels = channels
        self._hear_channels = hear_channels
        self._retry = retry
        self._steady = steady
        self._ticked_at = steady()
        self._alive: tuple[str, ...] = (me,)
        self._nudged = asyncio.Event()
        self._hellos: Iterator[str] = iter(())
        self._unread_since: float | None = None
        self._is_stopped = False

    # ------------------------------------------------------------ what we tell

    def publish(self, envelope: Envelope) -> None:
        self.bus.publish(envelope)

    def told(self, transitions: Sequence[wire.Transition]) -> None:
        """These were told here: the others read them in the database or, where it takes none, hear them from us."""
        if self._service.journal.problem is None:
            self.nudge()
        else:
            self.publish(Unstored(replica=self.me, transitions=tuple(transitions)))

    def nudge(self) -> None:
        """There is something new in the database."""
        self.publish(Stored(replica=self.me))

    def retired(self, node: str) -> None:
        self.publish(Retired(replica=self.me, node=node))

    def retry(self, channel: str) -> None:
        """Have the leader tell a channel again what it refused."""
        self.publish(Retried(replica=self.me, channel=channel))

    def pulse(self) -> None:
        """Tell the others that we are here."""
        if self._is_stopped:
            return
        leads = self.leadership.leads
        self.publish(
            Pulse(
                replica=self.me,
                sent_at=self._service.clock(),
                started_at=self._service.started_at,
                address=self.address,
                leads=self.leadership.since,
                ails=self._service.journal.problem is not None,
                channels=tuple(self._channels()) if leads else (),
            )
        )

    # ------------------------------------------------------------ what we hear

    def hear(self, envelope: Envelope) -> None:  # noqa: C901 - a table of kinds
        """An envelope of another replica. Raises MalformedEnvelopeError."""
        match envelope:
            case Said():
                self.abroad.hear(envelope)
            case Left():
                self.abroad.leave(envelope)
            case Pulse():
                self._hear_pulse(envelope)
            case Gone():
                self.members.gone(envelope.replica, self._steady())
            case Stored():
                self._nudged.set()
            case Unstored():
                news = self.chorus.news(envelope.transitions)
                if news:
                    self._service.follow(news)
            case Asked():
                session = self._service.roster.find(envelope.node)
                if session is not None and session.peer is not None:
                    session.peer.ask(envelope.request)
            case Retired():
                self.chorus.doors.forget(envelope.node)
                self._service.retire_quietly(envelope.node)
            case Retried():
                if self.leadership.leads:
                    self._retry(envelope.channel)

    def _hear_pulse(self, pulse: Pulse) -> None:
        off = pulse.sent_at - self._service.clock()
        pulsed = Pulsed(pulse.started_at, off, leads=pulse.leads, ails=pulse.ails)
        if self.members.pulse(pulse.replica, pulsed, self._steady()):
            logger.info("replica %s is here", pulse.replica)
            self.greet_for_all()
        if pulse.channels and not self.leadership.leads:
            self._hear_channels(pulse.channels)

    def on_connect(self) -> None:
        """NATS is there again: the others may have missed who is connected here, and we who is there."""
        self.chorus.listens_since = self._steady()
        self.greet_for_all()
        self._nudged.set()

    def greet_for_all(self) -> None:
        """Say hello for every agent that is connected here."""
        for node in [session.node for session in self._service.roster if session.peer is not None]:
            self._greet_for(node)

    def _greet_for(self, node: str) -> None:
        session, record = self._service.roster.find(node), self._service.engine.fleet.nodes.get(node)
        if session is not None and session.peer is not None and record is not None:
            self.crier.cry(session, 0, session.heard_at, record.hello)

    # ------------------------------------------------------------ once a second

    async def tick_for_ever(self) -> None:
        while True:
            with self._service.defects.going_on("keeping in step with the other replicas"):
                self.tick()
            await asyncio.sleep(TICK_SECONDS)

    def tick(self) -> None:
        now = self._steady()
        elapsed, self._ticked_at = now - self._ticked_at, now
        if elapsed > PAUSE_SECONDS:
            self.chorus.floor.yield_all()
        self.members.can_see(can_see=self.bus.is_connected or self.rolls.problem is None, now=now)
        self._note_the_living(now)
        if not self.bus.is_connected:
            self._service.engine.fleet.excuse_silence(elapsed, self._nodes_elsewhere())
        claim = self.members.leader_but_me(now)
        self.chorus.leader = self.me if self.leadership.leads else claim[0] if claim else None
        self.chorus.review()
        self.chorus.unspoken.expire(self._service.clock())
        self.pulse()
        self._greet_for_some()

    def _note_the_living(self, now: float) -> None:
        alive = self.members.alive(now)
        for replica in [one for one in self._alive if one not in alive]:
            logger.warning("replica %s is gone", replica)
        self._alive = alive
        self.abroad.keep_those_of(alive)

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
            self._greet_for(node)

    # ------------------------------------------------------------ what the others said

    async def follow_for_ever(self) -> None:
        """Read what is new in the database, and speak for what came to us once that is known."""
        while True:
            self._nudged.clear()
            due = self.chorus.due()
            if await self._catch_up():
                self._speak(due)
            elif self._unread_since is not None and self._steady() - self._unread_since > UNREAD_SECONDS:
                self._speak(self.chorus.due(UNREAD_SECONDS))
            await rung(self._nudged, self._rest_seconds())

    def _rest_seconds(self) -> float:
        return TICK_SECONDS / 2 if self.chorus.floor.is_waiting else POLL_SECONDS

    async def _catch_up(self) -> bool:
        try:
            await self.follower.catch_up()
        except Exception as error:
            if self._unread_since is None:
                self._unread_since = self._steady()
                logger.warning("what the other replicas said cannot be read: %s", error)
            return False
        self._unread_since = None
        return True

    def _speak(self, homes: Sequence[str]) -> None:
        if not homes:
            return
        with self._service.defects.judging("going on with what another replica spoke for"):
            here = {one.id for one in self._service.engine.episodes()}
            found, orphans = self.chorus.take(homes, self._service.board.open(), here)
            self._service.speak(found, orphans)

    # ------------------------------------------------------------ how it fares

    def problems(self) -> list[str]:
        """What is degraded, in sentences; none of it keeps this replica from its work."""
        found = []
        if self.bus.problem is not None:
            found.append(
                f"degraded: no NATS ({self.bus.problem}); each replica knows the readings of its own agents only"
            )
        if self._unread_since is not None:
            found.append("degraded: what the other replicas said cannot be read from the database")
        now = self._steady()
        if not self.leadership.leads and self.members.leader_but_me(now) is None:
            found.append("degraded: no replica leads at the moment; messages wait")
        for other, seconds in self.members.clocks_off(now):
            found.append(f"degraded: the clock of replica {other} differs from this one's by {seconds:+.1f} s; use NTP")
        return found

    def others_can_store(self) -> bool:
        """Whether some other replica can write to the database, where we cannot."""
        alive = self.members.alive(self._steady())
        return any(not self.members.ails(one) for one in alive if one != self.me)

    async def say_goodbye(self) -> None:
        """We stop: the others need not wait until they miss us."""
        self._is_stopped = True
        await self.leadership.give_up()
        await self.rolls.leave()
        await self.bus.last_word(Gone(replica=self.me))
