"""What a replica hears of the others over NATS."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from oomwatch import wire
from oomwatch.cluster.abroad import Abroad
from oomwatch.cluster.chorus import Chorus
from oomwatch.cluster.envelope import (
    Asked,
    Envelope,
    Gone,
    Left,
    Pulse,
    Retried,
    Said,
    Stored,
    Unstored,
)
from oomwatch.cluster.leadership import Leadership
from oomwatch.cluster.members import Members, Pulsed
from oomwatch.cluster.ownership import Doors
from oomwatch.service.service import Service

logger = logging.getLogger(__name__)


class Circle(NamedTuple):
    """Whom what is heard concerns."""

    service: Service
    members: Members
    doors: Doors
    leadership: Leadership
    chorus: Chorus
    abroad: Abroad
    nudged: asyncio.Event
    hear_channels: Callable[[Sequence[wire.ChannelState]], None]
    greet_for_all: Callable[[], None]
    retry: Callable[[str], None]


class Hearing:
    """`steady` is a clock that nobody sets."""

    def __init__(self, circle: Circle, steady: Callable[[], float]) -> None:
        self._circle = circle
        self._service = circle.service
        self._steady = steady

    def hear(self, envelope: Envelope) -> None:  # noqa: C901 - a table of kinds
        """An envelope of another replica. Raises MalformedEnvelopeError."""
        circle = self._circle
        match envelope:
            case Said():
                circle.abroad.hear(envelope)
            case Left():
                circle.abroad.leave(envelope)
            case Pulse():
                self._hear_pulse(envelope)
            case Gone():
                circle.members.gone(envelope.replica, self._steady())
            case Stored():
                circle.nudged.set()
            case Unstored():
                news = circle.chorus.news(envelope.transitions)
                if news:
                    self._service.journal.adopt(news)
                    self._service.follow(news)
            case Asked():
                session = self._service.roster.find(envelope.node)
                if session is not None and session.peer is not None:
                    session.peer.ask(envelope.request)
            case Retried():
                if circle.leadership.leads:
                    circle.retry(envelope.channel)

    def _hear_pulse(self, pulse: Pulse) -> None:
        circle = self._circle
        off = pulse.sent_at - self._service.clock()
        pulsed = Pulsed(pulse.started_at, off, leads=pulse.leads, ails=pulse.ails)
        if circle.members.pulse(pulse.replica, pulsed, self._steady()):
            logger.info("replica %s is here", pulse.replica)
            circle.greet_for_all()
        if pulse.channels and not circle.leadership.leads:
            circle.hear_channels(pulse.channels)

    def on_connect(self) -> None:
        """NATS is there again: the others may have missed who is connected here, and we who is there."""
        circle = self._circle
        circle.doors.listen(self._steady())
        circle.greet_for_all()
        circle.nudged.set()
