"""The browsers: each message is encoded once for all, and each browser has a bounded queue of its own."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from oomwatch import wire

# About a minute at one publication a second: a browser that is further behind is served better by a new snapshot.
QUEUE_MAX = 64

Frames = tuple[str, ...]


class TooSlowError(Exception):
    """The browser did not keep up: it is to connect again, for a new snapshot."""


class EndedError(Exception):
    """The browser may look no more."""


class Subscription:
    """What one browser has yet to be sent, oldest first."""

    def __init__(self, first: str) -> None:
        self._queue: deque[Frames] = deque([(first,)])
        self._news = asyncio.Event()
        self._news.set()
        self._is_full = self._is_over = False

    def end(self) -> None:
        """Nothing more is sent; whoever waits for the next frames is told."""
        self._is_over = True
        self._news.set()

    def waiting(self) -> int:
        return len(self._queue)

    def put(self, frames: Frames) -> None:
        if len(self._queue) >= QUEUE_MAX:
            self._is_full = True
            self._queue.clear()
        else:
            self._queue.append(frames)
        self._news.set()

    async def next(self) -> Frames:
        """The next frames, in order. Raises TooSlowError where some had to be dropped, EndedError after `end`."""
        while not (self._queue or self._is_full or self._is_over):
            self._news.clear()
            await self._news.wait()
        if self._is_over:
            raise EndedError
        if self._is_full:
            raise TooSlowError
        return self._queue.popleft()


class Hub:
    """Everyone who watches. Used from the event loop only."""

    def __init__(self) -> None:
        self._subscriptions: Final[dict[Subscription, None]] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._subscriptions)

    def longest_queue(self) -> int:
        """Publications that wait for the browser that is furthest behind."""
        return max((one.waiting() for one in self._subscriptions), default=0)

    def join(self, snapshot: Callable[[], wire.Snapshot]) -> Subscription:
        """Snapshot and subscription in one: nothing can change between the two."""
        subscription = Subscription(_encode(snapshot()))
        self._subscriptions[subscription] = None
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)

    def publish(self, messages: Iterable[wire.LiveMessage]) -> None:
        """Send these, in order, to everyone. A browser whose queue is full is on its way out."""
        if not self._subscriptions:
            return
        frames = tuple(_encode(message) for message in messages)
        if frames:
            for subscription in self._subscriptions:
                subscription.put(frames)


def _encode(message: wire.LiveMessage) -> str:
    return wire.encode(message).decode()
