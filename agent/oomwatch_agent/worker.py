"""One thread for one source, so that a source that never answers costs its own reading and nothing else.

A worker opens its source when it must, reads it when it is asked, and puts what came of it into the sampler's queue.
Its thread is a daemon: one that is stuck inside the driver does not keep the agent from exiting.
"""

import contextlib
import queue
import threading

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Reading, Source, SourceMissingError


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking a source once. `facts` where it was opened, `error` where opening or reading failed."""

    index: int
    facts: wire.NodeFacts | None = None
    reading: Reading | None = None
    error: Exception | None = None


class _Ask(msgspec.Struct, frozen=True):
    slow: bool
    reopen: bool


class Worker:
    """Owns a source: nobody else may call it."""

    def __init__(self, index: int, source: Source, answers: "queue.SimpleQueue[Answer]") -> None:
        self._index = index
        self._source = source
        self._answers = answers
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
        while (ask := self._asks.get()) is not None:
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
