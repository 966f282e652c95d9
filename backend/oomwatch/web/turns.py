"""Messages of agents share the event loop with ticks, browsers, channels and people, whatever comes at once.

The loop goes over everything that is ready before it looks at its timers and sockets again. Where a thousand agents
come back at once, or every card of a site fills up in the same second, that may be seconds of messages, and all others
would have to wait for the last of them.
"""

import asyncio
import time
from collections.abc import Callable

SHARE_SECONDS = 0.05


class Turns:
    """In each round of the event loop messages are taken for so long; what is left waits for the next round."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at: float | None = None  # None: in this round none was taken yet
        self._next_round = asyncio.Event()

    async def next(self) -> None:
        """Wait until a message may be taken."""
        while not self._has_room():
            await self._next_round.wait()

    def _has_room(self) -> bool:
        now = self._clock()
        if self._ends_at is None:
            self._ends_at = now + SHARE_SECONDS
            self._next_round.clear()
            asyncio.get_running_loop().call_soon(self._end_round)
        return now < self._ends_at

    def _end_round(self) -> None:
        self._ends_at = None
        self._next_round.set()
