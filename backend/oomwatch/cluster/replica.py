"""This server as one of several: what it hears of the others, and what it tells them. `keeping.py` does the rest.

    door: agent -> reception -> journal -> crier -> NATS -> abroad -> the others' reception -> their engines
    ours: engine -> chorus -> journal -> database -> told -> nudge over NATS -> the others' followers -> their boards

`web/clustered.py` puts the parts together.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from oomwatch import wire
from oomwatch.cluster.abroad import Abroad, Crier
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

UNSTORED_AT_ONCE = 20  # of at most some 10 KiB each: NATS takes a megabyte (max_payload)

logger = logging.getLogger(__name__)

Notices = Callable[[], Sequence[wire.ChannelState]]


class Line(Protocol):
    """What is used of the bus."""

    problem: str | None

    @property
    def is_connected(self) -> bool: ...

    def publish(self, envelope: Envelope) -> None: ...

    async def last_word(self, envelope: Envelope) -> None: ...


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
        self.bus: Line
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
        self.nudged = asyncio.Event()  # there may be something new in the database
        self._is_stopped = False

    # ------------------------------------------------------------ what we tell

    def publish(self, envelope: Envelope) -> None:
        self.bus.publish(envelope)

    def told(self, transitions: Sequence[wire.Transition]) -> None:
        """These were told here: the others read them in the database or, where it takes none, hear them from us."""
        if self._service.journal.problem is None:
            self.nudge()
        else:
            for begin in range(0, len(transitions), UNSTORED_AT_ONCE):
                some = tuple(transitions[begin : begin + UNSTORED_AT_ONCE])
                self.publish(Unstored(replica=self.me, transitions=some))

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
                ails=self.ails(),
                channels=tuple(self._channels()) if leads else (),
            )
        )

    def ails(self) -> bool:
        """Whether the database cannot be written from here."""
        return self._service.journal.problem is not None or self.rolls.problem is not None

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
                self.nudged.set()
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
        self.chorus.doors.ask_again()
        self.chorus.listens_since = self._steady()
        self.greet_for_all()
        self.nudged.set()

    def greet_for_all(self) -> None:
        """Say hello for every agent that is connected here."""
        for node in [session.node for session in self._service.roster if session.peer is not None]:
            self.greet_for(node)

    def greet_for(self, node: str) -> None:
        """Tell the others its hello, where its agent is connected here, and not by a line that nobody has ended."""
        if self.chorus.doors.of(node) not in (None, self.me):
            return
        session, record = self._service.roster.find(node), self._service.engine.fleet.nodes.get(node)
        if session is not None and session.peer is not None and record is not None and not record.stopped:
            self.crier.cry(session, 0, session.heard_at, record.hello)

    async def say_goodbye(self) -> None:
        """We stop: the others need not wait until they miss us."""
        self._is_stopped = True
        await self.leadership.give_up()
        await self.rolls.leave()
        await self.bus.last_word(Gone(replica=self.me))
