"""Threads for what blocks, which know for how long they have owed an answer."""

import asyncio
import functools
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WatchedPool(ThreadPoolExecutor):
    """A call that never returns (a file system that hangs, a lock) cannot be broken off, but it can be noticed."""

    def __init__(self, threads: int, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(threads, name)
        self._clock = clock
        self._asked_at: dict[object, float] = {}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As in the standard library."""
        future = super().submit(fn, *args, **kwargs)
        self._asked_at[future] = self._clock()
        future.add_done_callback(lambda done: self._asked_at.pop(done, None))
        return future

    def owed_seconds(self) -> float:
        """How long the call that was asked for first has waited for its end; 0 where none does."""
        now = self._clock()
        return max((now - at for at in list(self._asked_at.values())), default=0.0)


class Threads(NamedTuple):
    """Of the store: one writes, and others read beside it, so that a long question delays no alert."""

    writer: WatchedPool
    readers: WatchedPool

    async def write(self, fn: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.writer, functools.partial(fn, *args))

    async def read(self, fn: Callable[..., T], *args: object, **kwargs: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.readers, functools.partial(fn, *args, **kwargs))
