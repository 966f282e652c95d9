"""The channels in force, and what another alerts.yaml or another secret makes of them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.notify_world import gpus_of, recent, until, webhook
from tests.server.receiver import Receiver, receiving

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.channel import ChannelSection, Item
from oomwatch.notify.channels.alertmanager import AlertmanagerChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.config import NotifyConfig, decode_hook
from oomwatch.notify.feeding import Outlook
from oomwatch.notify.notifier import Notifier
from oomwatch.notify.outcome import Delivered, Outcome
from oomwatch.notify.secret import Secret
from oomwatch.store.store import Store
from oomwatch.units import Duration
from oomwatch.web.herald import Herald


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


@pytest.fixture
def another() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


async def at_once(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


@contextlib.asynccontextmanager
async def proclaiming(tmp_path: Path, config: NotifyConfig) -> AsyncIterator[Herald]:
    """A herald over a database, with this configuration in force."""
    with ThreadPoolExecutor(1) as thread:

        async def call(fn: Callable[..., Any], *args: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(thread, fn, *args)

        store = await call(Store.open, f"sqlite:///{tmp_path}/oomwatch.db")
        herald = Herald(store, call, http.client(), external_url=None, clock=time.time, environ={})
        herald.replace(herald.prepare(config))
        await herald.ready()
        try:
            yield herald
        finally:
            await herald.stop()
            await call(store.close)


def told(*channels: Any, **section: Any) -> NotifyConfig:
    return NotifyConfig(channels=channels, **section)


def test_what_a_channel_has_counted_stays_when_channels_change(tmp_path: Path, receiver: Receiver) -> None:
    async def story() -> None:
        async with proclaiming(tmp_path, told(webhook(receiver))) as herald:
            herald.offer([recent(0, run="one")])
            await until(lambda: herald.status()[0].delivered_total == 1)
            herald.replace(herald.prepare(told(webhook(receiver), group_wait=Duration(0.01))))
            herald.offer([recent(1, run="two")])
            await until(lambda: herald.status()[0].delivered_total == 2)
            herald.replace(herald.prepare(told()))
            await herald.ready()
            herald.replace(herald.prepare(told(webhook(receiver))))
            await herald.ready()
            assert [one.delivered_total for one in herald.status()] == [2]

    asyncio.run(story())
    assert [gpus_of(request) for request in receiver.received] == [["0"], ["1"]]


def test_what_mutes_and_the_heartbeat_disturb_no_channel(tmp_path: Path, receiver: Receiver) -> None:
    night = {"name": "night", "from": "22:00", "to": "07:00", "time_zone": "Europe/Berlin"}
    more = {"quiet_hours": [night], "inhibit": [], "heartbeat": {"url": "http://127.0.0.1:9/"}}
    other = msgspec.convert(more, NotifyConfig, dec_hook=decode_hook)

    async def story() -> None:
        async with proclaiming(tmp_path, told(webhook(receiver))) as herald:
            assert herald.prepare(msgspec.structs.replace(other, channels=(webhook(receiver),))) is None
            assert herald.prepare(told(webhook(receiver, "renamed"))) is not None

    asyncio.run(story())


def test_an_address_that_was_changed_in_its_file_is_taken_when_the_rules_are_read_again(
    tmp_path: Path, receiver: Receiver, another: Receiver
) -> None:
    address = tmp_path / "address"
    address.write_text(f"{receiver.url}/hook", encoding="utf-8")
    config = told(WebhookChannel(name="ops", url_file=str(address)))

    async def story() -> None:
        async with proclaiming(tmp_path, config) as herald:
            assert herald.prepare(config) is None
            address.write_text(f"{another.url}/hook", encoding="utf-8")
            herald.replace(herald.prepare(config))
            herald.offer([recent(0)])
            await until(lambda: bool(another.received))

    asyncio.run(story())
    assert not receiver.received


def test_channels_are_shown_in_the_order_of_alerts_yaml(tmp_path: Path, receiver: Receiver) -> None:
    manager = AlertmanagerChannel(name="am", url=Secret(receiver.url), watchdog=False)

    async def story() -> None:
        async with proclaiming(tmp_path, told(webhook(receiver, "a"), manager, webhook(receiver, "z"))) as herald:
            assert [one.name for one in herald.status()] == ["a", "am", "z"]
            assert [one.name for one in herald.fed()] == ["am"]

    asyncio.run(story())


class Stubborn:
    """A receiver that is kept up to date and whose request swallows its cancellation once, as before Python 3.12."""

    def __init__(self) -> None:
        self.config = ChannelSection(name="am")
        self.addresses = (Secret("http://127.0.0.1:9"),)
        self.has_watchdog = True
        self.asked = asyncio.Event()

    async def post(self, _address: Secret, _items: Sequence[Item], _now: float) -> Outcome:
        self.asked.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Delivered()


def test_a_feed_that_swallows_its_cancellation_once_still_ends(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")

    async def story() -> None:
        feed = Stubborn()
        notifier = Notifier([feed], told(), store, at_once, outlook=Outlook(list[wire.Alert]))
        await notifier.start()
        await asyncio.wait_for(feed.asked.wait(), 5)
        await asyncio.wait_for(notifier.stop(), 10)
        assert not [task for task in asyncio.all_tasks() if "am" in task.get_name()]

    asyncio.run(story())
    store.close()
