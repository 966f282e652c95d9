"""What is kept, and when people and agents are told: transitions first and at once, messages every few seconds.

The order is what makes a killed server lose and double nothing (decision 2): a transition is stored before anyone is
told of it, and a message is stored, and so acknowledged, only after every transition that was judged before it.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from oomwatch import wire
from oomwatch.service.measured import Histogram
from oomwatch.service.sessions import Session

# Messages in memory: eight minutes of 128 agents, about 120 MiB. What finds no room stays with its agent.
ENTRIES_MAX = 60_000
BYTES_MAX = 256 * 2**20  # of their frames; a message of ours takes about as much in memory
ENTRIES_AT_ONCE = 320  # one transaction of the store, some 45 ms: an alert may have to wait for one
UNSTORED_MAX = 20_000  # transitions that were told while the store failed, of some KiB each
NEWS_AT_ONCE = 200  # transitions that are stored, and then told, in one go: where very many fire, others get their turn

logger = logging.getLogger(__name__)

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""`await call(fn, *args)`: run a blocking method of the store in the thread that writes."""


class Entry(NamedTuple):
    """One message of a session, its times on our clock. `seq` is 0 for a hello, `frame_bytes` where it is not known."""

    session: Session
    seq: int
    received_at: float
    message: wire.AgentMessage
    frame_bytes: int = 0


class Archive(Protocol):
    """The part of the store that the journal writes to. The methods block, and raise where nothing was stored."""

    def append(self, transitions: Sequence[wire.Transition]) -> None: ...

    def record(self, entries: Sequence[Entry]) -> None: ...


class Journal:
    """One task writes; `announce` and `keep` never wait. `tell` is called with transitions once they are stored."""

    def __init__(
        self,
        archive: Archive,
        call: Call,
        tell: Callable[[Sequence[wire.Transition]], None],
        *,
        flush_seconds: float,
        entries_max: int = ENTRIES_MAX,
        bytes_max: int = BYTES_MAX,
        unstored_max: int = UNSTORED_MAX,
    ) -> None:
        self._archive = archive
        self._call = call
        self._tell = tell
        self._flush_seconds = flush_seconds
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._unstored_max = unstored_max
        self._bytes = 0  # of the entries
        self._news: list[wire.Transition] = []  # to be stored, then told
        self._unstored: list[wire.Transition] = []  # told already, since the store failed
        self._entries: list[Entry] = []
        self._skipped: dict[Session, None] = {}  # have numbers to acknowledge that nothing is stored of
        self._with_gap: dict[Session, None] = {}
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()  # the task and a flush at the end must not take the same news
        self._flush_now = False
        self.writing = Histogram()
        self.refused_total = 0  # messages that found no room
        self.dropped_total = 0  # transitions that were told, and are in no history
        self.is_running = False
        self.problem: str | None = None  # why the store cannot be written; None while it can

    def announce(self, transitions: Sequence[wire.Transition]) -> None:
        """Store these, then tell people."""
        self._news += transitions
        self._wake.set()

    def adopt(self, told: Sequence[wire.Transition]) -> None:
        """Another server has told these and could not store them, and may die before it can: store them too."""
        self._unstored += told

    @property
    def in_flight(self) -> frozenset[str]:
        """Ids of alerts of which a transition is judged and not yet told."""
        return frozenset(transition.id for transition in self._news)

    def waiting(self) -> tuple[int, int]:
        """How many messages, and how many transitions, are yet to be stored."""
        return len(self._entries), len(self._news) + len(self._unstored)

    def keep(self, entry: Entry) -> None:
        """Queue a message for the store. Where there is no room, it and what follows wait with the agent."""
        session = entry.session
        if entry.seq and (entry.seq <= session.queued_seq or session.has_gap):
            return
        if len(self._entries) >= self._entries_max or self._bytes >= self._bytes_max:
            session.has_gap = True
            self.refused_total += 1
            self._with_gap[session] = None
            return
        self._entries.append(entry)
        self._bytes += entry.frame_bytes
        if entry.seq:
            session.queued_seq = entry.seq
        if isinstance(entry.message, wire.Bye):
            self.flush_soon()

    def skip(self, session: Session, seq: int) -> None:
        """A message that is of no use: acknowledged in its turn, and not stored."""
        if seq > session.queued_seq and not session.has_gap:
            session.queued_seq = seq
            self._skipped[session] = None

    def flush_soon(self) -> None:
        """Do not wait for the interval: someone does."""
        self._flush_now = True
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        self.is_running = True
        try:
            await self._run()
        finally:
            self.is_running = False

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due_at = loop.time() + self._flush_seconds
        while True:
            await self._sleep_until(due_at)
            async with self._writing:
                await self._store_news()
                if self._flush_now or loop.time() >= due_at:
                    self._flush_now = False
                    await self._record()
                    due_at = loop.time() + self._flush_seconds

    async def _sleep_until(self, due_at: float) -> None:
        rest = due_at - asyncio.get_running_loop().time()
        try:
            await asyncio.wait_for(self._wake.wait(), max(0.0, rest))
        except asyncio.TimeoutError:
            return
        self._wake.clear()

    async def tell_now(self) -> None:
        """Store and tell what was announced by now: whoever asks next finds it."""
        async with self._writing:
            await self._store_news()

    async def flush(self) -> None:
        """Write all there is."""
        async with self._writing:
            await self._store_news()
            await self._record()

    async def _store_news(self) -> None:
        left = len(self._news)
        while left:
            news = self._news[: min(left, NEWS_AT_ONCE) if self.problem is None else left]
            if not await self._store(news):
                self._unstored += news
                self._drop_the_oldest()
            del self._news[: len(news)]
            left -= len(news)
            self._tell(news)

    async def _record(self) -> None:
        """Store what is queued by now, and acknowledge. Ends at the first failure: the next interval tries again."""
        if not await self._all_is_told():
            return
        skipped = {session: session.queued_seq for session in self._skipped}
        left = len(self._entries)
        self._entries.sort(key=_node)  # a node's readings make one piece in the database
        while left:
            batch = self._entries[: min(left, ENTRIES_AT_ONCE)]
            if not (await self._all_is_told() and await self._write(self._archive.record, batch)):
                return
            del self._entries[: len(batch)]
            self._bytes -= sum(entry.frame_bytes for entry in batch)
            left -= len(batch)
            for session, seq in {entry.session: entry.seq for entry in batch if entry.seq}.items():
                _acknowledge(session, seq)
        for session, seq in skipped.items():
            _acknowledge(session, seq)
            if session.queued_seq == seq:
                del self._skipped[session]
        self._close_gaps()

    async def _all_is_told(self) -> bool:
        """Store transitions that came up meanwhile, which go first, and those that could not be stored before."""
        await self._store_news()
        if self._unstored and not await self._store(()):
            self._drop_the_oldest()
        return not self._unstored

    async def _store(self, news: Sequence[wire.Transition]) -> bool:
        """Store these, and before them what could not be stored. What is adopted meanwhile stays for the next time."""
        before = list(self._unstored)
        if not await self._write(self._archive.append, [*before, *news]):
            return False
        del self._unstored[: len(before)]
        return True

    def _drop_the_oldest(self) -> None:
        """The last ones say how things stand."""
        surplus = len(self._unstored) - self._unstored_max
        if surplus > 0:
            del self._unstored[:surplus]
            self.dropped_total += surplus
            logger.error(
                "%d change(s) of alerts were told and will be missing in the history: the database takes none, and no "
                "more than %d can wait",
                surplus,
                self._unstored_max,
            )

    def _close_gaps(self) -> None:
        """There is room again: an agent that connects again sends what found none."""
        for session in self._with_gap:
            if session.has_gap and session.peer is not None:
                session.peer.dismiss(None)
        self._with_gap.clear()

    async def _write(self, write: Callable[[Any], None], what: Sequence[Any]) -> bool:
        began = time.perf_counter()
        try:
            await self._call(write, what)
        except Exception as error:
            self._fail(str(error) or type(error).__name__)
            return False
        self.writing.add(time.perf_counter() - began)
        if self.problem is not None:
            logger.warning("the database can be written again")
        self.problem = None
        return True

    def _fail(self, problem: str) -> None:
        if problem != self.problem:
            logger.error(
                "%s; nothing is lost: alerts go out, agents keep their messages, and it is tried again", problem
            )
        self.problem = problem


def _node(entry: Entry) -> str:
    return entry.session.node


def _acknowledge(session: Session, seq: int) -> None:
    session.stored_seq = max(session.stored_seq, seq)
    if session.peer is not None:
        session.peer.acknowledge(session.stored_seq)
