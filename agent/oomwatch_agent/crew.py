"""Reading all sources beside the thread that waits for them, so that one that never answers costs its reading alone.

While all is well one thread reads one source after the other, which is cheapest: every hand-over between threads costs
more than most sources do. What is left behind a slow one is given threads of its own (`spread`). One thread at most
reads a source at any moment, so a source need not know of any of this, but for one that can be looked at
(`source.Looking`), which happens beside, and one whose parts may hang (`source.InSteps`): what a thread began that
is stuck in it, another one ends.
"""

import contextlib
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch_agent import parked
from oomwatch_agent.source import Begun, InSteps, Reading, Source, SourceMissingError


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking a source once. `facts` where it was opened, `error` where opening or reading failed."""

    index: int
    seconds: float = 0.0  # that it took to read, whatever was read before it
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

    def __init__(self, sources: Sequence[Source], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._members = [_Member(index, source, clock) for index, source in enumerate(sources)]
        self._in_steps = [member for member in self._members if member.reads_in_steps]
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

    def read_here(self, asks: Sequence[Ask]) -> None:
        """The same in this thread, which may hang: then `spread` has the rest done."""
        self._waiting.extend(asks)
        self._drain()
        self._ring_bell()

    def spread(self) -> None:
        """Some source takes long: give every one that is behind it a thread of its own, and have its reading ended."""
        for _ in range(len(self._waiting)):
            self._start()
        for member in self._in_steps:
            if member.is_amid:
                parked.start(functools.partial(self._end_instead, member), "oomwatch sources")

    def take(self) -> list[Answer]:
        """What has been answered since the last time."""
        return [self._answers.popleft() for _ in range(len(self._answers))]

    def wait(self, seconds: float) -> None:
        """Until the bell is rung, at most so long. It may have been rung for answers that are taken already."""
        self._bell.acquire(timeout=max(0.0, seconds))

    def _start(self) -> None:
        parked.start(self._work, "oomwatch sources")

    def _work(self) -> None:
        self._drain()
        self._ring()

    def _drain(self) -> None:
        while True:
            try:
                ask = self._waiting.popleft()
            except IndexError:
                return
            answer = self._members[ask.index].do(ask)
            if answer is not None:
                self._answers.append(answer)

    def _end_instead(self, member: "_Member") -> None:
        answer = member.end_instead()
        if answer is not None:
            self._answers.append(answer)
            self._ring()

    def _ring_bell(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is ringing still
            self._bell.release()

    def _ring(self) -> None:
        self._ring_bell()
        if self.listener is not None:
            self.listener()


class _Amid(NamedTuple):
    """A reading that has begun and not ended, with the facts that its opening gave."""

    begun: Begun
    facts: wire.NodeFacts | None
    at: float  # by the crew's clock


class _Member:
    """A source, and whether it is open."""

    def __init__(self, index: int, source: Source, clock: Callable[[], float]) -> None:
        self._index = index
        self._clock = clock
        self._source = source
        self._in_steps = source if isinstance(source, InSteps) else None
        self._amid: _Amid | None = None
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

    @property
    def reads_in_steps(self) -> bool:
        return self._in_steps is not None

    @property
    def is_amid(self) -> bool:
        """Whether a reading is going on that another thread may end."""
        return self._amid is not None

    def end_instead(self) -> Answer | None:
        """End what another thread began, which is stuck; None where it has come to its end meanwhile."""
        amid = self._amid
        return None if amid is None else self._end(amid)

    def _end(self, amid: _Amid) -> Answer | None:
        if self._in_steps is None or not amid.begun.claim():
            return None  # another thread has it
        self._amid = None
        return self._answer(functools.partial(self._in_steps.end, amid.begun), amid.facts, amid.at)

    def _read(self, ask: Ask) -> Answer | None:
        facts: wire.NodeFacts | None = None
        if ask.reopen or not self._opened:
            try:
                facts = self._open()
            except Exception as error:  # whatever it is, it must not end the agent
                return Answer(index=self._index, error=error)
        began_at = self._clock()
        begun = self._in_steps.begin() if self._in_steps is not None and not ask.slow else None
        if begun is None:
            return self._answer(functools.partial(self._source.read, slow=ask.slow), facts, began_at)
        amid = self._amid = _Amid(begun, facts, began_at)
        begun.work()
        return self._end(amid)

    def _answer(self, read: Callable[[], Reading], facts: wire.NodeFacts | None, began_at: float) -> Answer:
        try:
            reading = read()
            return Answer(index=self._index, seconds=self._clock() - began_at, facts=facts, reading=reading)
        except SourceMissingError as missing:
            self._opened = False
            return Answer(index=self._index, facts=facts, error=missing)
        except Exception as error:  # whatever it is, it must not end the agent
            return Answer(index=self._index, seconds=self._clock() - began_at, facts=facts, error=error)

    def _open(self) -> wire.NodeFacts:
        self._opened = False
        if self._tried:
            self._source.close()
        self._tried = True
        facts = self._source.open()
        self._opened = True
        return facts
