"""Agents that are connected to other replicas: what they say is judged here too, and their names are taken here too."""

from collections.abc import Callable

from oomwatch import wire
from oomwatch.cluster.envelope import Asked, Envelope, Left, Said, message_in, raw
from oomwatch.cluster.gaps import Gaps
from oomwatch.cluster.ownership import Doors
from oomwatch.core.noderecord import NodeRecord
from oomwatch.service.journal import Entry
from oomwatch.service.measured import Histogram
from oomwatch.service.reception import Keeper
from oomwatch.service.sessions import Roster, Session

Publish = Callable[[Envelope], None]


class Crier:
    """A journal that tells the other replicas what it is given."""

    def __init__(self, journal: Keeper, doors: Doors, publish: Publish, me: str) -> None:
        self._journal = journal
        self._doors = doors
        self._publish = publish
        self._me = me

    def keep(self, entry: Entry) -> None:
        self._journal.keep(entry)
        self.cry(entry.session, entry.seq, entry.received_at, entry.message)

    def skip(self, session: Session, seq: int) -> None:
        """What this replica does not understand the others might, but the numbers go on without it."""
        self._journal.skip(session, seq)

    def cry(self, session: Session, seq: int, received_at: float, message: wire.AgentMessage) -> None:
        claimed_at = self._doors.claim(session.node, self._me, received_at)
        self._publish(
            Said(
                replica=self._me,
                node=session.node,
                session=session.session,
                seq=seq,
                received_at=received_at,
                claimed_at=claimed_at,
                interval_seconds=session.interval_seconds,
                skew_seconds=session.skew_seconds,
                message=raw(message),
            )
        )

    def left(self, session: Session) -> None:
        self._publish(Left(replica=self._me, node=session.node, session=session.session))


class FarPeer:
    """An agent's end of a connection to another replica. What it is asked for goes by way of that one."""

    def __init__(self, node: str, replica: str, publish: Publish, me: str) -> None:
        self.replica = replica
        self._node = node
        self._publish = publish
        self._me = me

    def acknowledge(self, seq: int) -> None:
        """Its door stores, and so acknowledges."""

    def ask(self, request: wire.ActRequest) -> None:
        self._publish(Asked(replica=self._me, node=self._node, request=request))

    def dismiss(self, refused: wire.Refused | None) -> None:
        """It is its door's to dismiss."""


class Abroad:
    """`nodes`: the fleet's, by name."""

    def __init__(
        self,
        roster: Roster,
        gaps: Gaps,
        nodes: Callable[[str], NodeRecord | None],
        doors: Doors,
        publish: Publish,
        me: str,
        clock: Callable[[], float],
    ) -> None:
        self._roster = roster
        self._gaps = gaps
        self._nodes = nodes
        self._doors = doors
        self._publish = publish
        self._me = me
        self._clock = clock
        self.unknown_total = 0
        self.lag = Histogram()

    def hear(self, said: Said) -> None:
        """What an agent said to another replica. Raises MalformedEnvelopeError."""
        message = message_in(said)
        if message is None:
            self.unknown_total += 1
            return
        if self._doors.learn(said.node, said.replica, said.claimed_at):
            self._take(said, message)

    def _take(self, said: Said, message: wire.AgentMessage) -> None:
        record = self._nodes(said.node)
        hello = message if isinstance(message, wire.Hello) else record.hello if record is not None else None
        if hello is None:
            return  # until its door says hello for it, as it does for all when it sees a new replica
        if hello.session != said.session:
            return
        session = self._roster.stand_in(hello, FarPeer(said.node, said.replica, self._publish, self._me))
        session.interval_seconds, session.skew_seconds = said.interval_seconds, said.skew_seconds
        self._gaps.take(session, message, said.received_at)
        if isinstance(message, wire.Sample):
            self.lag.add(max(0.0, self._clock() - said.received_at))

    def leave(self, left: Left) -> None:
        session = self._roster.find(left.node)
        if session is None or session.session != left.session or session.is_here:
            return
        if isinstance(session.elsewhere, FarPeer) and session.elsewhere.replica == left.replica:
            session.elsewhere = None

    def let_go(self, node: str) -> None:
        """Its agent has gone to another replica, which one nobody could tell us."""
        session = self._roster.find(node)
        if session is not None and session.peer is None:
            session.is_here = False
            self._doors.let_go(node)

    def keep_those_of(self, alive: tuple[str, ...]) -> None:
        """Nobody has the agents of a replica that is dead: they may come to any."""
        for session in self._roster:
            if isinstance(session.elsewhere, FarPeer) and session.elsewhere.replica not in alive:
                session.elsewhere = None
