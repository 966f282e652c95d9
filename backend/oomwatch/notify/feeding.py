"""Keeps the receivers of one channel up to date, each by a task of its own: to the notifier what a courier is."""

import asyncio
import random
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from oomwatch import wire
from oomwatch.notify.channel import Feed
from oomwatch.notify.feed import Feeder, united
from oomwatch.notify.health import totals_of
from oomwatch.notify.inbox import Routed
from oomwatch.notify.route import Router
from oomwatch.notify.selection import Selection
from oomwatch.tasks import end


class Outlook(NamedTuple):
    """What receivers are told of. `board`: alerts that are open or ended lately; `is_well`: whether the server does its
    work; `find`: the alert of an id, as it is on the board."""

    board: Callable[[], Collection[wire.Alert]] = tuple
    is_well: Callable[[], bool] = lambda: True
    find: Callable[[str], wire.Alert | None] = lambda _: None


class Feeding:
    """One channel."""

    def __init__(self, feed: Feed, router: Router, outlook: Outlook, *, clock: Callable[[], float]) -> None:
        selection = Selection(outlook.board, router, feed.config, clock)
        self._feeders = [
            Feeder(feed, address, selection.alerts, outlook.is_well, clock=clock, chance=random.random)
            for address in feed.addresses
        ]
        self._name = feed.config.name
        self._before = wire.ChannelState(name=feed.config.name, kind=feed.config.kind)
        self._tasks: list[asyncio.Task[None]] = []

    def offer(self, news: Iterable[Routed]) -> None:
        """Something has been told: what the board says of it is sent at once."""
        for _ in news:
            for feeder in self._feeders:
                feeder.wake()
            return

    async def run(self) -> None:
        """Until it is stopped, or a receiver's task ends by a defect."""
        self._tasks = [asyncio.create_task(feeder.run(), name=f"feed {self._name}") for feeder in self._feeders]
        try:
            over, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(self._tasks)
        for task in over:
            task.result()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def inherit(self, before: wire.ChannelState) -> None:
        """An earlier one of this channel has counted so far."""
        self._before = before

    def status(self) -> wire.ChannelState:
        return totals_of(self._before, united([feeder.state for feeder in self._feeders]))
