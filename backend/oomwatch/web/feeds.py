"""The receivers that are kept up to date of what fires, such as Alertmanager: made anew when alerts.yaml changes."""

import asyncio
import logging
import os
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.mute.matcher import labels_of
from oomwatch.core.rule import severity_of
from oomwatch.notify.channel import ChannelSection, Feed, Surroundings
from oomwatch.notify.channels import open_feeds
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.feed import Feeder, united
from oomwatch.notify.http import Client
from oomwatch.notify.route import Router, Target
from oomwatch.notify.words import Frame
from oomwatch.service.seams import Herald

logger = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """What alerts.yaml says of feeds, opened."""

    config: NotifyConfig
    feeds: Sequence[Feed]
    router: Router


class Tellers(NamedTuple):
    """Both that hear of transitions once they are stored."""

    herald: Herald
    feeds: "Feeds"

    def offer(self, transitions: Sequence[wire.Transition]) -> None:
        self.herald.offer(transitions)
        self.feeds.offer(transitions)

    def status(self) -> list[wire.ChannelState]:
        """How each channel fares: those that are sent messages, then those that are kept up to date."""
        return [*self.herald.status(), *self.feeds.status()]


class Feeds:
    """Use from the event loop."""

    def __init__(
        self,
        client: Client,
        *,
        external_url: str | None,
        clock: Callable[[], float],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._client = client
        self._board: Callable[[], Collection[wire.Alert]] = tuple
        self._is_well: Callable[[], bool] = lambda: True
        self._external_url = external_url
        self._clock = clock
        self._environ = environ
        self._config: NotifyConfig | None = None
        self._feeders: list[Feeder] = []
        self._tasks: list[asyncio.Task[None]] = []

    def watch(self, board: Callable[[], Collection[wire.Alert]]) -> None:
        """Where all alerts are that are open or ended lately, once there is such a place."""
        self._board = board

    def attach(self, is_well: Callable[[], bool]) -> None:
        """Whether the server does its work, once it is known whom to ask: as long as it does, the Watchdog fires."""
        self._is_well = is_well

    def _well(self) -> bool:
        return self._is_well()

    def prepare(self, config: NotifyConfig) -> Prepared:
        """Raises SettingError where an address or a secret cannot be found or used."""
        frame = Frame(language=config.language, external_url=self._external_url)
        feeds = open_feeds(config.channels, Surroundings(frame, self._client, self._environ))
        return Prepared(config, feeds, config.router())

    def replace(self, successor: Prepared) -> None:
        """Change over, unless all is the same. Receivers are told all that fires anew, which they do not mind."""
        if successor.config == self._config:
            return
        self._config = successor.config
        for task in self._tasks:
            task.cancel()
        self._feeders = [
            Feeder(feed, address, selection.alerts, self._well, clock=self._clock, chance=random.random)
            for feed in successor.feeds
            for selection in [Selection(self._board, successor.router, feed.config, self._clock)]
            for address in feed.addresses
        ]
        self._tasks = [asyncio.create_task(feeder.run(), name=f"feed {feeder.state.name}") for feeder in self._feeders]

    def offer(self, transitions: Sequence[wire.Transition]) -> None:
        """Something has been told: what the board says of it is sent at once."""
        if transitions:
            for feeder in self._feeders:
                feeder.wake()

    def problems(self) -> list[str]:
        """Why a receiver is told nothing, in sentences; one that does not answer is tried again and is none."""
        return [
            f"alerts are not sent to the channel {feeder.state.name} any more, by a defect; restart the server"
            for feeder, task in zip(self._feeders, self._tasks, strict=True)
            if task.done()
        ]

    def status(self) -> list[wire.ChannelState]:
        """How each channel fares, in the order of alerts.yaml."""
        names = dict.fromkeys(feeder.state.name for feeder in self._feeders)
        return [united([one.state for one in self._feeders if one.state.name == name]) for name in names]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._feeders, self._tasks = [], []


class Selection:
    """The alerts that are meant for one channel: by its severity and by the routes."""

    def __init__(
        self,
        board: Callable[[], Collection[wire.Alert]],
        router: Router,
        config: ChannelSection,
        clock: Callable[[], float],
    ) -> None:
        self._board = board
        self._router = router
        self._config = config
        self._clock = clock
        self._targets: dict[str, Target | None] = {}  # by alert; its labels never change

    def alerts(self) -> list[wire.Alert]:
        board = self._board()
        known = self._targets
        targets = {one.id: known[one.id] if one.id in known else self._target(one) for one in board}
        self._targets = targets  # of those that are gone nothing is kept
        now = self._clock()
        return [alert for alert in board if is_meant(alert, targets[alert.id], self._config, now)]

    def _target(self, alert: wire.Alert) -> Target | None:
        labels = {**labels_of(alert), "severity": severity_of(alert)}
        found = self._router.targets(labels)
        return next((target for target in found if target.channel == self._config.name), None)


def is_meant(alert: wire.Alert, target: Target | None, config: ChannelSection, now: float) -> bool:
    """Whether a channel is to hold this alert. One that it escalates to, once nobody took care of it in time."""
    told = severity_of(alert)
    if target is None or wire.SEVERITIES.index(told) < wire.SEVERITIES.index(config.severity):
        return False
    if target.escalate_after is None:
        return True
    care, fired_at = alert.acknowledged, alert.fired_at
    until = now if alert.ended_at is None else alert.ended_at
    until = until if care is None else min(until, care.at)
    return fired_at is not None and until - fired_at >= target.escalate_after
