"""What a replica hears of the others over NATS."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

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
from oomwatch.cluster.members import Pulsed

if TYPE_CHECKING:
    from oomwatch.cluster.replica import Replica

logger = logging.getLogger(__name__)


class Hearing:
    """`steady` is a clock that nobody sets."""

    def __init__(self, replica: "Replica", steady: Callable[[], float]) -> None:
        self._replica = replica
        self._service = replica.service
        self._steady = steady

    def hear(self, envelope: Envelope) -> None:  # noqa: C901 - a table of kinds
        """An envelope of another replica. Raises MalformedEnvelopeError."""
        replica = self._replica
        match envelope:
            case Said():
                replica.abroad.hear(envelope)
            case Left():
                replica.abroad.leave(envelope)
            case Pulse():
                self._hear_pulse(envelope)
            case Gone():
                replica.members.gone(envelope.replica, self._steady())
            case Stored():
                replica.nudged.set()
            case Unstored():
                news = replica.chorus.news(envelope.transitions)
                if news:
                    self._service.journal.adopt(news)
                    self._service.follow(news)
            case Asked():
                session = self._service.roster.find(envelope.node)
                if session is not None and session.peer is not None:
                    session.peer.ask(envelope.request)
            case Retried():
                if replica.leadership.leads:
                    replica.retry(envelope.channel)

    def _hear_pulse(self, pulse: Pulse) -> None:
        replica = self._replica
        off = pulse.sent_at - self._service.clock()
        pulsed = Pulsed(pulse.started_at, off, leads=pulse.leads, ails=pulse.ails)
        if replica.members.pulse(pulse.replica, pulsed, self._steady()):
            logger.info("replica %s is here", pulse.replica)
            replica.greet_for_all()
        if pulse.channels and not replica.leadership.leads:
            replica.channels.hear(pulse.channels)

    def on_connect(self) -> None:
        """NATS is there again: the others may have missed who is connected here, and we who is there."""
        replica = self._replica
        replica.doors.listen(self._steady())
        replica.greet_for_all()
        replica.nudged.set()
