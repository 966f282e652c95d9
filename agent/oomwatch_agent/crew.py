"""Reading all sources beside the thread that waits for them, so that one that never answers costs its reading alone.

While all is well one thread reads one source after the other, which is cheapest: every hand-over between threads costs
more than most sources do. What is left behind a slow one is given threads of its own (`spread`). One thread at most
reads a source at any moment, so a source need not know of any of this, but for one that can be looked at
(`source.Looking`): that happens beside.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from oomwatch import wire
from oomwatch_agent import parked
from oomwatch_agent.source import Reading, Source, SourceMissingError


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking a source once. `facts` where it was opened, `error` where opening or reading failed."""

    index: int
    facts: wire.NodeFacts | None = None
    reading: Reading | None = None
    error: Exception | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Read a source; after closing and opening it again, where `reopen`."""

    index: int
    slow: bool = False
    reopen: bool = False
    close: bool = False  # instead: close it


class Crew:
    """Owns the sources: nobody else opens, reads or closes them. Used by one thread, which asks each once at a time."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._members = [_Member(index, source) for index, source in enumerate(sources)]
        self._waiting: deque[Ask] = deque()
        self._answers: deque[Answer] = deque()
        self._bell = threading.Lock()  # held until all that were asked have answered
        self._bell.acquire()
        self.listener: Callable[[], None] | None = None  # called by another thread when the bell is rung

    def ask(self, asks: Sequence[Ask]) -> None:
        """Read these, in this order. The answers come through `answers`."""
        if asks:
            self._waiting.extend(asks)
            self._start()

    def spread(self) -> None:
        """Some source takes long: give every one that is behind it a thread of its own."""
        for _ in range(len(self._waiting)):
            self._start()

    def take(self) -> list[Answer]:
        """What has been answered since the last time."""
        return [self._answers.popleft() for _ in range(len(self._answers))]

    def wait(self, seconds: float) -> None:
        """Until the bell is rung, at most so long. It may have been rung for answers that are taken already."""
        self._bell.acquire(timeout=max(0.0, seconds))

    def _start(self) -> None:
        parked.start(self._work, "oomwatch sources")

    def _work(self) -> None:
        while True:
            try:
                ask = self._waiting.popleft()
            except IndexError:
                return
            answer = self._members[ask.index].do(ask)
            if answer is not None:
                self._answers.append(answer)
            if not self._waiting:
                self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is ringing still
            self._bell.release()
        if self.listener is not None:
            self.listener()


class _Member:
    """A source, and whether it is open."""

    def __init__(self, index: int, source: Source) -> None:
        self._index = index
        self._source = source
        self._opened = self._tried = self._closed = False

    def do(self, ask: Ask) -> Answer | None:
        if self._closed:
            return None
        if ask.close:
            self._closed = True
            with contextlib.suppress(Exception):  # it is over, whatever its closing says
                self._source.close()
            return Answer(index=self._index)
        return self._read(ask)

    def _read(self, ask: Ask) -> Answer:
        facts = None
        try:
            if ask.reopen or not self._opened:
                facts = self._open()
            return Answer(index=self._index, facts=facts, reading=self._source.read(slow=ask.slow))
        except SourceMissingError as missing:
            self._opened = False
            return Answer(index=self._index, facts=facts, error=missing)
        except Exception as error:  # whatever it is, it must not end the agent
            return Answer(index=self._index, facts=facts, error=error)

    def _open(self) -> wire.NodeFacts:
        self._opened = False
        if self._tried:
            self._source.close()
        self._tried = True
        facts = self._source.open()
        self._opened = True
        return facts
