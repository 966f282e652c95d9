"""A notifier with short waits, over a real database and real receivers on loopback."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from tests.server.notify_samples import transition
from tests.server.receiver import Receiver

from oomwatch import wire
from oomwatch.letters import Account, Letter, Standing
from oomwatch.notify import http
from oomwatch.notify.backoff import Patience, pause_seconds
from oomwatch.notify.channel import Channel, Surroundings
from oomwatch.notify.channels import ChannelConfig, open_channels
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.feeding import Outlook
from oomwatch.notify.notifier import Call, Ledger, Notifier
from oomwatch.notify.route import Route
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame
from oomwatch.store.store import Store
from oomwatch.units import Duration

DEADLINE_SECONDS = 60.0


def webhook(receiver: Receiver, name: str = "ops", **fields: Any) -> WebhookChannel:
    return WebhookChannel(name=name, url=Secret(receiver.url + "/hook"), **fields)


def slack(receiver: Receiver, name: str = "team", **fields: Any) -> SlackChannel:
    return SlackChannel(name=name, url=Secret(receiver.url + "/slack"), **fields)


def at_once(_failures: int) -> float:
    return 0.01


def half_a_second_and_more(failures: int) -> float:
    return pause_seconds(failures, 1.0)


class BreakableLedger:
    """A store that can be made to fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_broken = False

    def stories(self, since: float, unjudged_since: float) -> list[wire.Transition]:
        self._refuse_if_broken()
        return self._store.stories(since, unjudged_since)

    def account(self, channel: str, alert_ids: Sequence[str], now: float) -> Account:
        self._refuse_if_broken()
        return self._store.account(channel, alert_ids, now)

    def keep_letters(self, letters: Sequence[Letter], standings: Sequence[Standing] = ()) -> None:
        self._refuse_if_broken()
        self._store.keep_letters(letters, standings)

    def _refuse_if_broken(self) -> None:
        if self.is_broken:
            raise OSError("the disk is gone")


class World:
    """A running notifier, and its database in a thread of its own."""

    def __init__(self, store: Store, notifier: Notifier, call: Call) -> None:
        self.store = store
        self.notifier = notifier
        self._call = call

    async def happens(self, *news: wire.Transition) -> None:
        """It is stored first, and then told."""
        await self._call(self.store.append, news)
        self.notifier.offer(news)

    def status(self, name: str = "ops") -> wire.ChannelState:
        return next(one for one in self.notifier.status() if one.name == name)

    async def nothing_waits(self) -> None:
        await until(lambda: all(one.waiting == 0 for one in self.notifier.status()))


@contextlib.asynccontextmanager
async def notifying(
    store: Store,
    *channels: ChannelConfig,
    ledger: Ledger | None = None,
    others: Sequence[Channel] = (),
    before: Sequence[wire.Transition] = (),
    patience: Patience = at_once,
    board: Callable[[], Collection[wire.Alert]] = tuple,
    **section: Any,
) -> AsyncIterator[World]:
    """`others`: channels of no kind that alerts.yaml knows. `before`: offered while it starts."""
    names = [*(one.name for one in channels), *(one.config.name for one in others)]
    usual: dict[str, Any] = {
        "group_wait": Duration(0.05),
        "group_interval": Duration(0.0),
        "route": Route(channels=tuple(names)),
    }
    config = NotifyConfig(**(usual | section), channels=channels)
    with ThreadPoolExecutor(1) as thread:

        async def call(fn: Callable[..., Any], *args: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(thread, fn, *args)

        async with http.client() as client:
            opened = [*open_channels(config.channels, Surroundings(Frame(), client, {})), *others]
            outlook = Outlook(board, find=lambda alert: next((one for one in board() if one.id == alert), None))
            notifier = Notifier(opened, config, ledger or store, call, outlook=outlook, patience=patience)
            world = World(store, notifier, call)
            notifier.offer(before)
            await notifier.start()
            try:
                yield world
            finally:
                await notifier.stop()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        await asyncio.sleep(0.005)


def recent(gpu: int = 0, *, ago: float = 1.0, **fields: Any) -> wire.Transition:
    """It fired a second ago."""
    now = time.time()
    fired = transition(gpu, **{"at": now - ago, "started_at": now - ago - 30, **fields})
    return msgspec.structs.replace(fired, id=f"{fired.id}-{fired.labels.get('run')}")


def gpus_of(request: Any) -> list[str]:
    return [alert["labels"]["gpu"] for alert in request.json()["alerts"]]


def ids_of(receiver: Receiver) -> list[str]:
    return [request.headers["webhook-id"] for request in receiver.received]
