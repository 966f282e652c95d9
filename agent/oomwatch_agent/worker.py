"""One thread for one source, so that a source that never answers costs its own reading and nothing else.

A worker opens its source when it must, reads it when it is asked, and puts what came of it into the sampler's queue. In
between it glances at what cannot wait, where the source can, and says so.
Its thread is a daemon: one that is stuck inside the driver does not keep the agent from exiting.
"""

import contextlib
import queue
import threading
from collections.abc import Callable

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Glancing, Reading, Source, SourceMissingError


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking a source once. `facts` where it was opened, `error` where opening or reading failed."""

    index: int
    facts: wire.NodeFacts | None = None
    reading: Reading | None = None
    error: Exception | None = None


class _Ask(msgspec.Struct, frozen=True):
    slow: bool
    reopen: bool


class Glances(msgspec.Struct, frozen=True):
    """How often to glance, and whom to tell, from the worker's thread, that a read should not wait."""

    every_seconds: float
    hurry: Callable[[], None]


class Worker:
    """Owns a source: nobody else may call it."""

    def __init__(
        self, index: int, source: Source, answers: "queue.SimpleQueue[Answer]", glances: Glances | None = None
    ) -> None:
        self._index = index
        self._source = source
        self._answers = answers
        self._glances = glances
        self._asks: queue.SimpleQueue[_Ask | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"oomwatch {source.name}"[:60], daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self._source.name

    def ask(self, *, slow: bool, reopen: bool) -> None:
        """Read (after closing and opening again, where `reopen`). The answer comes through the queue."""
        self._asks.put(_Ask(slow, reopen))

    def stop(self) -> None:
        """Close the source and end the thread, once it is not busy."""
        self._asks.put(None)

    def join(self, timeout_seconds: float) -> None:
        self._thread.join(timeout_seconds)

    def _work(self) -> None:
        opened = tried = False
        while (ask := self._next_ask(opened=opened)) is not None:
            facts = None
            try:
                if ask.reopen or not opened:
                    opened = False
                    if tried:
                        self._source.close()
                    tried = True
                    facts = self._source.open()
                    opened = True
                answer = Answer(index=self._index, facts=facts, reading=self._source.read(slow=ask.slow))
            except SourceMissingError as missing:
                opened = False
                answer = Answer(index=self._index, facts=facts, error=missing)
            except Exception as error:  # whatever it is, it must not end the agent
                answer = Answer(index=self._index, facts=facts, error=error)
            self._answers.put(answer)
        with contextlib.suppress(Exception):
            self._source.close()

    def _next_ask(self, *, opened: bool) -> _Ask | None:
        glances, source = self._glances, self._source
        while opened and glances is not None and isinstance(source, Glancing):
            with contextlib.suppress(queue.Empty):
                return self._asks.get(timeout=glances.every_seconds)
            with contextlib.suppress(Exception):  # whatever it is, the next read meets it too
                if source.glance():
                    glances.hurry()
        return self._asks.get()
