"""What an agent says goes from its socket to whoever takes it in one step of the event loop.

A queue and a task in between, as a WebSocket of ASGI has them, are a seventh of what the loop has to do at a thousand
GPUs. While something waits, for its turn or since its agent says too much, nothing more is read of the connection. What
waits when the connection ends is taken all the same: they may be the last words of a node.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

from oomwatch.web.turns import Turns

LENDER = "lender"  # in the state of ASGI's scope: the connection, as Lender (web/connections.py)

Message: TypeAlias = bytes

logger = logging.getLogger(__name__)


class Lender(Protocol):
    """A connection that lends its messages, as they come in."""

    def lend(self, inbox: "Inbox") -> None:
        """Each goes there from now on, and none to `websocket.receive`. It is told when the connection is lost."""
        ...

    def stop_reading(self) -> None: ...

    def go_on_reading(self) -> None: ...

    def give_up(self) -> None:
        """Cut it off."""
        ...


class Inbox:
    """Of one connection: its first message is waited for, each later one is taken as soon as it may be."""

    def __init__(self, lender: Lender, turns: Turns) -> None:
        self._lender = lender
        self._turns = turns
        self._waiting: deque[Message] = deque()
        self._begun = asyncio.Event()
        self._take: Callable[[Message], float]
        self._is_open = self._is_closed = self._is_lost = False
        self._is_held = False  # it waits for its turn, or for a pause to be over
        self._pause: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()
        lender.lend(self)

    async def first(self) -> Message | None:
        """The first message; None where the connection ends before."""
        await self._begun.wait()
        return self._waiting.popleft() if self._waiting else None

    def open(self, take: Callable[[Message], float]) -> None:
        """Have the others taken. `take` says how many seconds are to pass before the next one."""
        self._take, self._is_open = take, True
        self._go_on()

    def lose(self) -> None:
        """The connection is lost: what waits is all that there is."""
        self._is_lost = True
        self._begun.set()
        self._look_whether_over()

    async def over(self) -> None:
        """Nothing more is said, though the line may stay: wait until all is taken, or until the inbox is closed."""
        self.lose()
        await self._over.wait()

    def close(self) -> None:
        """What waits is dropped, and so is what still comes."""
        self._is_closed = True
        self._begun.set()
        self._over.set()
        self._waiting.clear()
        self._turns.leave(self._have_turn)
        if self._pause is not None:
            self._pause.cancel()
        self._lender.go_on_reading()

    def put(self, message: Message) -> None:
        """One has come in."""
        if self._is_closed:
            return
        self._waiting.append(message)
        if not self._is_open:
            self._begun.set()
        elif not self._is_held:
            self._go_on()
        if self._waiting or self._is_held:
            self._lender.stop_reading()

    def _go_on(self) -> None:
        while self._waiting:
            if not self._turns.take(self._have_turn):
                self._is_held = True
                return
            if not self._take_one():
                return
        self._lender.go_on_reading()

    def _look_whether_over(self) -> None:
        if self._is_lost and not self._waiting:
            self._over.set()

    def _have_turn(self) -> None:
        self._is_held = False
        if self._take_one():
            self._go_on()

    def _take_one(self) -> bool:
        """Whether the next one may follow."""
        try:
            seconds = self._take(self._waiting.popleft())
        except Exception:
            logger.exception("a message cannot be taken; its connection is cut off, and its agent sends it again")
            self.close()
            self._lender.give_up()
            return False
        self._look_whether_over()
        if seconds > 0 and not self._is_closed:
            self._is_held = True
            self._pause = asyncio.get_running_loop().call_later(seconds, self._pause_is_over)
        return not self._is_held

    def _pause_is_over(self) -> None:
        self._is_held = False
        self._go_on()
