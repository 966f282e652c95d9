"""Messages of agents share the event loop with ticks, browsers, channels and people, whatever comes at once.

The loop goes over everything that is ready before it looks at its timers and sockets again. Where a thousand agents
come back at once, or every card of a site fills up in the same second, that may be seconds of messages, and all others
would have to wait for the last of them.
"""

import asyncio
from collections import deque

MESSAGES_A_ROUND = 32  # 15 ms of ordinary ones, 100 of a node on which eight alerts fire


class Turns:
    """In each round of the event loop so many messages are taken; what is left waits for the next ones, in order."""

    def __init__(self) -> None:
        self._left = MESSAGES_A_ROUND
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def next(self) -> None:
        """Wait until a message may be taken."""
        loop = asyncio.get_running_loop()
        if self._left == MESSAGES_A_ROUND:
            loop.call_soon(self._begin_round)
        if self._left > 0:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _begin_round(self) -> None:
        self._left = MESSAGES_A_ROUND
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():  # else who waited has gone
                turn.set_result(None)
                self._left -= 1
        if self._left < MESSAGES_A_ROUND:
            asyncio.get_running_loop().call_soon(self._begin_round)
