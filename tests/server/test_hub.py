"""Browsers: each sees every change after its snapshot, or is told to start anew."""

import asyncio

import msgspec
import pytest

from oomwatch import wire
from oomwatch.hub import QUEUE_MAX, Hub, Subscription, TooSlowError

TICK = wire.Tick(at=5.0)


def snapshot() -> wire.Snapshot:
    return wire.Snapshot(at=1.0, server=wire.ServerInfo(version="0", started_at=0.0))


def next_of(subscription: Subscription) -> tuple[str, ...]:
    return asyncio.run(asyncio.wait_for(subscription.next(), 5))


def test_the_snapshot_comes_first_and_then_the_changes_in_order() -> None:
    hub = Hub()
    hub.publish([TICK])  # before: part of the snapshot already
    browser = hub.join(snapshot)
    hub.publish([TICK, wire.Tick(at=6.0)])
    first, second = next_of(browser), next_of(browser)
    assert [msgspec.json.decode(frame)["type"] for frame in first] == ["snapshot"]
    assert [msgspec.json.decode(frame)["at"] for frame in second] == [5.0, 6.0]


def test_a_change_is_encoded_once_for_all() -> None:
    hub = Hub()
    one, other = hub.join(snapshot), hub.join(snapshot)
    hub.publish([TICK])
    next_of(one), next_of(other)
    assert next_of(one)[0] is next_of(other)[0]


def test_a_browser_that_does_not_keep_up_is_told_to_start_anew_and_the_others_go_on() -> None:
    hub = Hub()
    slow, quick = hub.join(snapshot), hub.join(snapshot)
    for _ in range(QUEUE_MAX):
        next_of(quick)
        hub.publish([TICK])
    with pytest.raises(TooSlowError):
        next_of(slow)
    assert len(next_of(quick)) == 1


def test_a_browser_that_has_left_is_sent_nothing() -> None:
    hub = Hub()
    browser = hub.join(snapshot)
    hub.leave(browser)
    hub.publish([TICK])
    next_of(browser)
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(browser.next(), 0.01))
    assert len(hub) == 0


def test_who_waits_is_woken_by_the_next_change() -> None:
    async def story() -> tuple[str, ...]:
        hub = Hub()
        browser = hub.join(snapshot)
        await browser.next()
        waiting = asyncio.create_task(browser.next())
        await asyncio.sleep(0)
        hub.publish([TICK])
        return await asyncio.wait_for(waiting, 5)

    assert len(asyncio.run(story())) == 1
