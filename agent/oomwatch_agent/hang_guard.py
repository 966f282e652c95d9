"""Asking several things that may each hang for ever, so that one that hangs costs its own answer and nothing else.

A driver call that blocks inside the kernel cannot be broken off. All one can do is to leave its thread behind, go on
without it, and not ask the same thing again until the call has returned: so there is at most one stuck thread for each
thing asked. While all is well, one thread asks everything in turn, which is cheapest.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from oomwatch_agent import parked

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# After this share of the time limit without an end, what has not been asked yet gets threads of its own: late enough
# for a driver that is merely slow, early enough to leave the others most of the time.
_PATIENCE_RATIO = 0.25
THREAD_NAME = "hang-guard"  # of the threads that ask, while they do


class HangGuard(Generic[K, V]):
    """Remembers which of the things it asked have not come back. Used by one thread at a time."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._out: dict[K, Round[K, V]] = {}

    def hung(self) -> frozenset[K]:
        """What was asked and has not come back until now."""
        if not self._out:  # while all is well
            return frozenset()
        self._out = {key: asked for key, asked in self._out.items() if not asked.has(key)}
        return frozenset(self._out)

    def ask(self, keys: Iterable[K], job: Callable[[K], V]) -> dict[K, V]:
        """Do the job for each key and give the answers that came within the limit, which is for all of them together.

        Keys that are still out are left alone. The answer of one that comes back later is thrown away: it is old. What
        a job raises is raised here.
        """
        asked = self.begin(keys, job)
        if asked.keys:
            asked.start_thread()
        return self.end(asked)

    def begin(self, keys: Iterable[K], job: Callable[[K], V]) -> "Round[K, V]":
        """The same in two steps, for who has a thread that may hang: it does `Round.work`, whereupon `end` does not
        wait; where it hangs, another one calls `end`."""
        hung = self.hung()
        return Round([key for key in dict.fromkeys(keys) if key not in hung], job, self._limit_seconds)

    def end(self, asked: "Round[K, V]") -> dict[K, V]:
        """The answers, once all are here or the limit is over."""
        asked.wait()
        if not asked.has_all:
            self._out.update({key: asked for key in asked.keys if not asked.has(key)})
        return asked.results()


class Round(Generic[K, V]):
    """A queue of keys that one thread, or in trouble several, work through."""

    def __init__(self, keys: list[K], job: Callable[[K], V], limit_seconds: float) -> None:
        self.keys = keys
        self._limit_seconds = limit_seconds
        self._began_at = time.monotonic()
        self._finished = threading.Lock()  # held until all have answered; an Event would cost three times as much
        self._claimed = threading.Lock()
        self._job = job
        self._waiting = deque(keys)
        self._answers: dict[K, V | BaseException] = {}
        if keys:
            self._finished.acquire()

    def claim(self) -> bool:
        """Of those who try, the first gets yes: it is the one that calls `end`."""
        return self._claimed.acquire(blocking=False)

    def wait(self) -> None:
        """Until all have answered, or the limit is over; what waits for long gets threads of its own."""
        if self.has_all:
            return
        if not self._is_finished_within(self._limit_seconds * _PATIENCE_RATIO):
            for _ in range(len(self._waiting)):
                self.start_thread()
            self._is_finished_within(self._limit_seconds)

    def _is_finished_within(self, seconds: float) -> bool:
        """Since it began. Asked once more after a no."""
        return self._finished.acquire(timeout=max(0.0, self._began_at + seconds - time.monotonic()))

    @property
    def has_all(self) -> bool:
        return len(self._answers) == len(self.keys)

    def has(self, key: K) -> bool:
        return key in self._answers

    def results(self) -> dict[K, V]:
        given = dict(self._answers)  # a late thread may add to it at any moment
        results: dict[K, V] = {}
        for key, answer in given.items():
            if isinstance(answer, BaseException):
                raise answer
            results[key] = answer
        return results

    def start_thread(self) -> None:
        parked.start(self.work, THREAD_NAME)

    def work(self) -> None:
        """Ask what nobody has asked yet, in this thread, which may hang in it."""
        while True:
            try:
                key = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._answers[key] = self._job(key)
            except BaseException as error:  # whatever it is, the asking thread raises it
                self._answers[key] = error
            if self.has_all:
                self._finish()

    def _finish(self) -> None:
        with contextlib.suppress(RuntimeError):  # two that answered last at once: the other has released it
            self._finished.release()
