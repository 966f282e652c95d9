"""Carries transitions to channels: every one at least once, and no channel waits for another.

A transition is in the store before it is offered. A channel marks what it delivered; what it had not marked when the
server stopped is offered again at the next start.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from oomwatch import wire
from oomwatch.notify.channel import Channel
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.courier import ChannelStatus, Courier
from oomwatch.notify.grouping import TransitionKey

RESEND_SECONDS = 3600.0  # what is older when the server starts is no news any more
STOP_SECONDS = 3.0  # how long a message on its way may take when the server stops
logger = logging.getLogger(__name__)

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""`await call(fn, *args)`: run a method of the store in the thread that owns it."""


class DeliveryLog(Protocol):
    """What the store keeps for channels. The methods block; they run in the store's thread."""

    def undelivered(self, channel: str, since: float) -> list[wire.Transition]:
        """Transitions with `at` from `since` on that this channel has not marked, oldest first."""
        ...

    def mark_delivered(self, channel: str, keys: Sequence[TransitionKey]) -> None:
        """Never to be given by `undelivered` again. Marking twice is no error."""
        ...


class Notifier:
    """Everything runs in one event loop; `offer` is called from that loop."""

    def __init__(
        self,
        channels: Sequence[Channel],
        config: NotifyConfig,
        log: DeliveryLog,
        call: Call,
        *,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._log = log
        self._call = call
        self._clock = clock
        self._couriers = [Courier(channel, config, self._mark, clock=clock, chance=chance) for channel in channels]
        self._tasks: list[asyncio.Task[None]] = []

    def offer(self, transitions: Iterable[wire.Transition]) -> None:
        """Take news to all channels that want it. Never blocks and never raises for what a channel does."""
        news = list(transitions)
        for courier in self._couriers:
            courier.offer(news)

    async def start(self) -> None:
        """Begin to deliver; first what was left undelivered within the last hour."""
        await asyncio.gather(*(self._recover(courier) for courier in self._couriers))
        self._tasks = [asyncio.create_task(courier.run(), name=f"notify {courier.name}") for courier in self._couriers]

    async def _recover(self, courier: Courier) -> None:
        try:
            since = self._clock() - RESEND_SECONDS
            left: list[wire.Transition] = await self._call(self._log.undelivered, courier.name, since)
        except Exception:
            logger.exception("cannot read what channel %s has not delivered; it gets new alerts only", courier.name)
            return
        courier.offer(left)

    async def _mark(self, channel: str, keys: Sequence[TransitionKey]) -> None:
        await self._call(self._log.mark_delivered, channel, keys)

    async def stop(self) -> None:
        """Let messages on their way arrive, then stop. What still waits is in the store."""
        for courier in self._couriers:
            courier.stop()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def dead(self) -> list[str]:
        """Names of the channels whose courier has ended by a defect: to them nothing is sent any more."""
        pairs = zip(self._couriers, self._tasks, strict=False)  # before the start there are no tasks
        return [courier.name for courier, task in pairs if task.done()]

    def status(self) -> list[ChannelStatus]:
        """How each channel fares, in the order of alerts.yaml."""
        return [courier.status() for courier in self._couriers]
