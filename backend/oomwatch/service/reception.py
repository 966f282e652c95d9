"""Agents come in here: who is admitted, on whose clock their messages are, and what is kept of them."""

import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.service.allowance import MadeUpError
from oomwatch.service.journal import Entry
from oomwatch.service.measured import Histogram
from oomwatch.service.sessions import Numbered, Peer, RefusalError, Roster, Session

logger = logging.getLogger(__name__)

Observe = Callable[[wire.AgentMessage, str, float], None]
_Message = TypeVar("_Message", bound=wire.AgentMessage)


class Keeper(Protocol):
    """What is taken in is kept here: the journal, or who passes it on to other servers too."""

    def keep(self, entry: Entry) -> None: ...

    def skip(self, session: Session, seq: int) -> None: ...


class Reception:
    """`now` reads the clock, `observe` judges a message of a node. `journal` is set once there is one."""

    def __init__(self, roster: Roster, fleet: Fleet, now: Callable[[], float], observe: Observe) -> None:
        self.journal: Keeper
        self.on_leave: Callable[[Session], None] = lambda _: None
        self.is_closed = False  # the server is going down
        self.unknown_total = 0
        self.malformed_total = 0
        self.lag = Histogram()  # from the moment of a reading to the end of its judgement
        self._roster = roster
        self._fleet = fleet
        self._now = now
        self._observe = observe

    def admit(self, hello: wire.Hello, peer: Peer, stored_seq: int, frame_bytes: int = 0) -> Session:
        """Take an agent in by its first hello. Raises RefusalError.

        `stored_seq` is what the database says of a session that is not in memory.
        """
        self._check_open()
        now = self._now()
        session = self._roster.admit(hello, peer, stored_seq, now)
        self._take_hello(session, self._believed(session, hello), now, frame_bytes)
        return session

    def check(self, hello: wire.Hello) -> None:
        """Whether `admit` would take this agent, of which nothing is kept. Raises RefusalError."""
        self._check_open()
        self._roster.check_free(hello, self._now())

    def _check_open(self) -> None:
        if self.is_closed:
            raise RefusalError(wire.RefusedReason.SHUTTING_DOWN, "the server is going down", retry=True)

    def leave(self, session: Session, peer: Peer) -> None:
        """The connection has ended. Whether that is an alarm, silence will tell."""
        if session.peer is peer:
            self.on_leave(session)
        self._roster.leave(session, peer)

    def take(self, session: Session, message: wire.AgentMessage, frame_bytes: int = 0) -> None:
        """A message of an admitted agent. One that was processed before is only kept, where that is still to do."""
        try:
            message = self._believed(session, message)
        except MadeUpError as error:
            self._refuse(session, message, str(error))
            return
        now = self._now()
        session.heard_at = now
        session.messages_total += 1
        if isinstance(message, wire.Hello):
            session.greet(message, now)
            self._take_hello(session, message, now, frame_bytes)
            return
        message = self._with_run(session.on_our_clock(message, now), session.node)
        if message.seq > session.processed_seq:
            session.processed_seq = message.seq
            self._observe(message, session.node, now)
            if isinstance(message, wire.Sample):
                self.lag.add(max(0.0, self._now() - message.at))
        self.journal.keep(Entry(session, message.seq, now, message, frame_bytes))

    def take_from_afar(self, session: Session, message: wire.AgentMessage, received_at: float) -> None:
        """What an agent said to another server, which keeps it, on that one's clock and under its run's name."""
        session.heard_at = max(session.heard_at, min(received_at, self._now()))
        session.messages_total += 1
        if not isinstance(message, wire.Hello):
            if message.seq <= session.processed_seq:
                return
            session.processed_seq = message.seq
        self._observe(message, session.node, received_at)

    def _believed(self, session: Session, message: _Message) -> _Message:
        """Raises MadeUpError."""
        believed = self._roster.believed(session, message)
        if believed is not message and session.nameless_total == 1:
            logger.warning(
                "node %s names more runs or engines than there is room for: it is judged all the same, without those",
                session.node,
            )
        return believed

    def _with_run(self, message: Numbered, node: str) -> Numbered:
        """Runs by their names; an event that names none belongs to the run that its agent was given. In history too."""
        message = self._fleet.names.apply(message)
        record = self._fleet.nodes.get(node)
        if not isinstance(message, wire.Event) or message.run is not None or record is None or record.hello.run is None:
            return message
        return msgspec.structs.replace(message, run=record.hello.run)

    def _take_hello(self, session: Session, hello: wire.Hello, now: float, frame_bytes: int) -> None:
        self._observe(hello, hello.node, now)
        self.journal.keep(Entry(session, 0, now, hello, frame_bytes))

    def _refuse(self, session: Session, message: wire.AgentMessage, why: str) -> None:
        """What is understood, and not believed: skipped for good, so that the agent keeps it no longer."""
        if session.refused_total == 0:
            logger.warning("a message of node %s is refused, and skipped: %s", session.node, why)
        session.refused_total += 1
        self.count_malformed(session)
        if not isinstance(message, wire.Hello):
            session.processed_seq = max(session.processed_seq, message.seq)
            self.journal.skip(session, message.seq)

    def skip(self, session: Session, unknown: wire.Unknown) -> None:
        """A message of a type that is newer than this server."""
        session.heard_at = self._now()
        session.unknown_total += 1
        self.unknown_total += 1
        if unknown.seq is not None:
            session.processed_seq = max(session.processed_seq, unknown.seq)
            self.journal.skip(session, unknown.seq)

    def count_malformed(self, session: Session) -> None:
        session.heard_at = self._now()
        session.malformed_total += 1
        self.malformed_total += 1
