"""Messages of agents share the event loop with ticks, browsers, channels and people, whatever comes at once.

The loop goes over everything that is ready before it looks at its timers and sockets again. Where a thousand agents
come back at once, or every card of a site fills up in the same second, that may be seconds of messages, and all others
would have to wait for the last of them.
"""

import asyncio
from collections.abc import Callable

MESSAGES_A_ROUND = 32  # 15 ms of ordinary ones, 100 of a node on which eight alerts fire


class Turns:
    """In each round of the event loop so many messages are taken; what is left waits for the next ones, in order."""

    def __init__(self) -> None:
        self._left = MESSAGES_A_ROUND
        self._is_asked = False  # for a round
        self._waiting: dict[Callable[[], None], None] = {}  # in order

    def take(self, later: Callable[[], None]) -> bool:
        """Whether a message may be taken now. If not, `later` is called once one may: a message, and no more."""
        if self._left <= MESSAGES_A_ROUND // 2:
            self._ask()
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return True
        self._waiting[later] = None
        return False

    def leave(self, later: Callable[[], None]) -> None:
        """Whoever waited has gone."""
        self._waiting.pop(later, None)

    def _ask(self) -> None:
        """Be told of the next round: not of each, for where few messages come that would be half of all rounds."""
        if not self._is_asked:
            self._is_asked = True
            asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        self._is_asked = False
        self._left = MESSAGES_A_ROUND
        try:
            while self._waiting and self._left > 0:
                later = next(iter(self._waiting))
                del self._waiting[later]
                self._left -= 1
                later()
        finally:  # who fails must not stop all others
            if self._waiting:
                self._ask()
