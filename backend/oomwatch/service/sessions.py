"""Who is connected: one session a node, its clock, and how far its messages have come."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from oomwatch import wire
from oomwatch.core.noderecord import stale_after_seconds
from oomwatch.service.allowance import Allowance, MadeUpError
from oomwatch.service.timepiece import steady_clock
from oomwatch.service.vocabulary import RUNS_OF_ALL_MAX, Vocabulary

_CROWD_MS = 1000  # what goes back by more was taken by a clock that was set
SKEW_SECONDS_MIN = 2.0  # docs/reference/wire-protocol.md, "Clocks": less than that is delay, not skew
MAX_NODES = 16_384  # far above what one server is meant for; beyond it someone is inventing names

Numbered: TypeAlias = wire.Sample | wire.Event | wire.Bye
_Message = TypeVar("_Message", bound=wire.AgentMessage)


class Peer(Protocol):
    """The agent's end of an open connection. No method blocks or raises."""

    def acknowledge(self, seq: int) -> None:
        """Tell it that everything up to `seq` is stored."""
        ...

    def ask(self, request: wire.ActRequest) -> None:
        """Have it do something before a process dies."""
        ...

    def dismiss(self, refused: wire.Refused | None) -> None:
        """Say why, where there is something to say, and close: it is to connect again."""
        ...


class RefusalError(Exception):
    """A connection that is not taken, and what its agent is told."""

    def __init__(self, reason: wire.RefusedReason, detail: str, *, retry: bool) -> None:
        super().__init__(detail)
        self.refused = wire.Refused(reason=reason, detail=detail, retry=retry)


class StillConnectedError(Exception):
    """A node whose agent is connected cannot be forgotten."""


class Session:
    """One start of one agent, over all its connections.

    Numbers run ahead of each other: a message is processed when it arrives, queued for the store at once unless there
    is no room, and stored some seconds later.
    """

    def __init__(self, hello: wire.Hello, stored_seq: int) -> None:
        self.node = hello.node
        self.session = hello.session
        self.interval_seconds = hello.interval_seconds
        self.processed_seq = self.queued_seq = self.stored_seq = stored_seq
        self.has_gap = False  # something above queued_seq found no room: it is to be sent again
        self.allowance: Allowance | None = None  # while it was never connected here
        self.peer: Peer | None = None
        self.elsewhere: Peer | None = None  # the same at the server that the agent is connected to, of several
        self.is_here = True  # what is stored of it is known here; not so while it was only ever elsewhere
        self.skew_seconds = 0.0
        self._sampled_ms = 0  # when its last sample was taken
        self.connected_at = 0.0
        self.heard_at = 0.0
        self.messages_total = 0
        self.malformed_total = 0
        self.refused_total = 0  # of these, what was understood and is not believed
        self.nameless_total = 0  # what is taken without some of its runs' names
        self.unknown_total = 0

    @property
    def is_connected(self) -> bool:
        """Here, or to another server."""
        return self.peer is not None or self.elsewhere is not None

    def connect(self, peer: Peer, hello: wire.Hello, now: float) -> None:
        """A new connection of this session: what found no room comes again."""
        self.peer, self.connected_at, self.heard_at = peer, now, now
        self.has_gap = False
        self.greet(hello, now)

    def greet(self, hello: wire.Hello, now: float) -> None:
        """Any hello of the session: what it tells of the agent counts from now on, its clock with it."""
        skew = hello.sent_at - now
        self.skew_seconds = skew if abs(skew) >= SKEW_SECONDS_MIN else 0.0
        self.interval_seconds = hello.interval_seconds

    def come_here(self, stored_seq: int) -> None:
        """From another server, which has stored so much of it. What it processed we have processed as well."""
        self.is_here, self.elsewhere = True, None
        self.stored_seq = self.queued_seq = stored_seq
        self.processed_seq = max(self.processed_seq, stored_seq)

    def go(self, elsewhere: Peer) -> None:
        """To another server. A connection that we still have is dead, and nobody has noticed."""
        peer, self.peer = self.peer, None
        self.is_here, self.elsewhere = False, elsewhere
        if peer is not None:
            peer.dismiss(None)

    def clock_jumped(self, seconds: float) -> None:
        """The server's clock was set by so much: what was measured by it moves along."""
        self.skew_seconds -= seconds
        self._sampled_ms = 0
        self.connected_at += seconds
        self.heard_at += seconds

    def is_dead(self, now: float) -> bool:
        """Whether its connection has brought nothing for so long that another agent may have the name."""
        return now - self.heard_at > stale_after_seconds(self.interval_seconds)

    def on_our_clock(self, message: Numbered, now: float) -> Numbered:
        """The message with its time as our clock would have told it: not later than now, when it has arrived."""
        at = min(now, max(0.0, message.at - self.skew_seconds))
        if isinstance(message, wire.Sample) and message.seq > self.processed_seq:
            at = self._own_moment(at)
        return message if at == message.at else msgspec.structs.replace(message, at=at)

    def _own_moment(self, at: float) -> float:
        """A sample is known by its millisecond, so it has one of its own: several that an agent sends at once, with a
        clock that is a little ahead, would all be of now, and one of them be kept."""
        before_ms, self._sampled_ms = self._sampled_ms, round(at * 1000)
        if not 0 <= before_ms - self._sampled_ms < _CROWD_MS:
            return at
        self._sampled_ms = before_ms + 1
        return self._sampled_ms / 1000


class Roster:
    """The session of each node that was heard since the start."""

    def __init__(self, steady: Callable[[], float] = steady_clock) -> None:
        self._by_node: dict[str, Session] = {}
        self._left = asyncio.Event()
        self._steady = steady
        self._runs = Vocabulary(RUNS_OF_ALL_MAX)
        self._allowances: dict[str, Allowance] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(self._by_node.values())

    def find(self, node: str) -> Session | None:
        return self._by_node.get(node)

    def known(self, hello: wire.Hello) -> Session | None:
        """The session that this agent goes on with, where we remember it."""
        session = self._by_node.get(hello.node)
        return session if session is not None and session.session == hello.session and session.is_here else None

    def check_free(self, hello: wire.Hello, now: float) -> None:
        """Whether this agent could have the node. Raises RefusalError where another live one has it."""
        holder = self._by_node.get(hello.node)
        if holder is None:
            if len(self._by_node) >= MAX_NODES:
                raise RefusalError(wire.RefusedReason.OVERLOADED, f"there are {MAX_NODES} nodes already", retry=True)
        elif holder.is_connected and holder.session != hello.session and not holder.is_dead(now):
            raise RefusalError(
                wire.RefusedReason.NODE_TAKEN,
                f'another agent that is connected calls itself "{hello.node}"; give one of them another --node',
                retry=True,
            )

    def admit(self, hello: wire.Hello, peer: Peer, stored_seq: int, now: float) -> Session:
        """Give the node to this agent. Raises RefusalError where another live one has it."""
        self.check_free(hello, now)
        allowance = self._allowances.get(hello.node) or Allowance(self._runs)
        _check_allowed(hello, allowance, self._steady())
        self._allowances[hello.node] = allowance
        holder = self._by_node.get(hello.node)
        if holder is not None and holder.peer is not None:
            holder.peer.dismiss(None)
        if holder is None or holder.session != hello.session:
            holder = self._by_node[hello.node] = Session(hello, stored_seq)
        elif not holder.is_here:
            holder.come_here(stored_seq)
        holder.connect(peer, hello, now)
        holder.allowance = allowance
        return holder

    def charge(self, session: Session, frame_bytes: int) -> float:
        """A frame of it came: for so many seconds the next one is not to be read."""
        return session.allowance.charge(frame_bytes, self._steady()) if session.allowance is not None else 0.0

    def believed(self, session: Session, message: _Message) -> _Message:
        """What is to be taken of its message. Raises MadeUpError."""
        if session.allowance is None:
            return message
        believed = session.allowance.believed(message, self._steady())
        if believed is not message:
            session.nameless_total += 1
        return believed

    def stand_in(self, hello: wire.Hello, elsewhere: Peer) -> Session:
        """The session of an agent that is connected to another server."""
        session = self._by_node.get(hello.node)
        if session is None or session.session != hello.session:
            earlier, session = session, Session(hello, 0)
            if earlier is not None:
                earlier.go(elsewhere)
            self._by_node[hello.node] = session
        session.go(elsewhere)
        return session

    def check_gone(self, node: str) -> None:
        """Raises StillConnectedError."""
        session = self._by_node.get(node)
        if session is not None and session.is_connected:
            raise StillConnectedError(f'the agent of node "{node}" is connected; stop it first')

    def forget(self, nodes: Iterable[str]) -> None:
        """Nodes that are no more. Who is connected stays."""
        for node in nodes:
            session = self._by_node.get(node)
            if session is not None and not session.is_connected:
                del self._by_node[node]
                self._allowances.pop(node, None)

    def leave(self, session: Session, peer: Peer) -> None:
        """A connection has ended; another one may have taken its place already."""
        if session.peer is peer:
            session.peer = None
            self._left.set()

    async def emptied(self, within_seconds: float) -> bool:
        """Wait until nobody is connected any more; False where some still are when the time is up."""
        try:
            await asyncio.wait_for(self._until_empty(), within_seconds)
        except asyncio.TimeoutError:
            return False
        return True

    async def _until_empty(self) -> None:
        while any(session.peer is not None for session in self):
            self._left.clear()
            await self._left.wait()


def _check_allowed(hello: wire.Hello, allowance: Allowance, steady: float) -> None:
    """Raises RefusalError."""
    owed_seconds = allowance.owed_seconds(steady)
    if owed_seconds > 0:
        raise RefusalError(
            wire.RefusedReason.OVERLOADED,
            f'the agent of "{hello.node}" says too much: it is heard again in {owed_seconds:.0f} s',
            retry=True,
        )
    try:
        allowance.believed(hello, steady)
    except MadeUpError as error:
        raise RefusalError(wire.RefusedReason.MALFORMED, f'node "{hello.node}": {error}', retry=False) from error
