"""One report of the doctor at a time, in a thread of its own: neither the event loop nor the store waits for it."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from oomwatch.web.answers import RefusedError

T = TypeVar("T")
WAITING_MAX = 16  # a page asks again at every pause of typing, and has one question at a time
WITHIN_SECONDS = 30.0  # one takes a fraction of a second


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class Practice(ThreadPoolExecutor):
    """Use from the event loop; it ends as a context manager."""

    def __init__(self, *, waiting_max: int = WAITING_MAX, within_seconds: float = WITHIN_SECONDS) -> None:
        super().__init__(1, "doctor")
        self._waiting_max = waiting_max
        self._within_seconds = within_seconds
        self._waiting = 0
        self._turn: asyncio.Lock | None = None  # made in the loop that it is used in

    async def see(self, work: Callable[[], T], is_gone: Callable[[], Awaitable[bool]]) -> T:
        """What `work` gives, once those before are done. Raises RefusedError where too many wait or it takes too long,
        and ClientGoneError where nobody waits for it when its turn comes."""
        if self._waiting >= self._waiting_max:
            raise RefusedError(
                503, f"{self._waiting} configurations wait to be looked at already; ask again in a moment"
            )
        self._waiting += 1
        try:
            return await asyncio.wait_for(self._seen(work, is_gone), self._within_seconds)
        except asyncio.TimeoutError as error:
            raise RefusedError(
                503, f"it took longer than {self._within_seconds:g} seconds; `oomwatch doctor` has no such limit"
            ) from error
        finally:
            self._waiting -= 1

    async def _seen(self, work: Callable[[], T], is_gone: Callable[[], Awaitable[bool]]) -> T:
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            if await is_gone():
                raise ClientGoneError
            return await asyncio.get_running_loop().run_in_executor(self, functools.partial(work))
