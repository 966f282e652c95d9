"""Every transition reaches every channel at least once: real receivers and notifier, a store in memory."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.server.notify_samples import transition
from tests.server.receiver import Answer, Receiver, receiving

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.channels import ChannelConfig, open_channels
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.grouping import TransitionKey, key_of
from oomwatch.notify.notifier import Notifier
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame
from oomwatch.units import Duration

DEADLINE_SECONDS = 10.0
KEY = "a" * 32


class MemoryLog:
    """A store of transitions and of what each channel delivered; it outlives notifiers as a database would."""

    def __init__(self) -> None:
        self.stored: list[wire.Transition] = []
        self.delivered: set[tuple[str, TransitionKey]] = set()
        self.broken = False

    def undelivered(self, channel: str, since: float) -> list[wire.Transition]:
        if self.broken:
            raise OSError("disk is gone")
        return [one for one in self.stored if one.at >= since and (channel, key_of(one)) not in self.delivered]

    def mark_delivered(self, channel: str, keys: Sequence[TransitionKey]) -> None:
        if self.broken:
            raise OSError("disk is gone")
        self.delivered |= {(channel, key) for key in keys}


def webhook(receiver: Receiver, name: str = "ops", **fields: Any) -> WebhookChannel:
    return WebhookChannel(name=name, url=Secret(receiver.url + "/hook"), **fields)


def slack(receiver: Receiver, name: str = "team") -> SlackChannel:
    return SlackChannel(name=name, url=Secret(receiver.url + "/slack"))


@contextlib.asynccontextmanager
async def notifying(
    log: MemoryLog, *channels: ChannelConfig, interval_seconds: float = 0.0, before: Sequence[wire.Transition] = ()
) -> AsyncIterator[Notifier]:
    """A running notifier with short waits, whose store lives in a thread of its own."""
    config = NotifyConfig(group_wait=Duration(0.05), group_interval=Duration(interval_seconds), channels=channels)
    with ThreadPoolExecutor(1) as thread:

        async def call(fn: Callable[..., Any], *args: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(thread, fn, *args)

        async with http.client() as client:
            opened = open_channels(config.channels, Frame(), client, {})
            notifier = Notifier(opened, config, log, call, chance=lambda: 1.0)
            notifier.offer(before)
            await notifier.start()
            try:
                yield notifier
            finally:
                await notifier.stop()


def store_and_offer(notifier: Notifier, log: MemoryLog, *news: wire.Transition) -> None:
    log.stored.extend(news)
    notifier.offer(news)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        await asyncio.sleep(0.005)


async def nothing_waits(notifier: Notifier) -> None:
    await until(lambda: all(status.queue_length == 0 for status in notifier.status()))


def recent(gpu: int = 0, **fields: Any) -> wire.Transition:
    now = time.time()
    return transition(gpu, **{"at": now, "started_at": now - 30, **fields})


def gpus_of(request: Any) -> list[str]:
    return [alert["labels"]["gpu"] for alert in request.json()["alerts"]]


def test_eight_gpus_reach_slack_and_webhook_as_one_message_each_and_are_marked() -> None:
    log = MemoryLog()

    async def story(first: Receiver, second: Receiver) -> None:
        async with notifying(log, slack(first), webhook(second)) as notifier:
            for gpu in range(8):
                store_and_offer(notifier, log, recent(gpu))
            await until(lambda: len(log.delivered) == 16)
            await nothing_waits(notifier)
            for status in notifier.status():
                assert (status.delivered_total, status.failed_total, status.last_error) == (1, 0, None)
                assert status.last_success_at == pytest.approx(time.time(), abs=DEADLINE_SECONDS)

    with receiving() as first, receiving() as second:
        asyncio.run(story(first, second))
        [to_slack], [to_webhook] = first.received, second.received
    assert "8 GPUs of gpu-07" in to_slack.json()["text"]
    assert gpus_of(to_webhook) == [str(gpu) for gpu in range(8)]


def test_firing_and_resolved_are_told_in_turn() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            store_and_offer(notifier, log, recent(started_at=5.0))
            await until(lambda: len(receiver.received) == 1)
            store_and_offer(notifier, log, recent(started_at=5.0, state="resolved"))
            await until(lambda: len(receiver.received) == 2)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        assert [request.json()["status"] for request in receiver.received] == ["firing", "resolved"]


def test_changes_of_a_group_keep_the_interval() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver), interval_seconds=0.6) as notifier:
            notifier.offer([recent(0)])
            await until(lambda: len(receiver.received) == 1)
            for gpu in (1, 2, 3):
                notifier.offer([recent(gpu)])
                await asyncio.sleep(0)
            await until(lambda: len(receiver.received) == 2)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        first, second = receiver.received
    assert gpus_of(second) == ["1", "2", "3"]
    assert second.at - first.at > 0.5


def test_a_failing_receiver_is_tried_again_until_it_takes_the_message() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver), interval_seconds=60) as notifier:
            store_and_offer(notifier, log, recent(0))
            await until(lambda: len(receiver.received) == 1)
            await until(lambda: notifier.status()[0].last_error is not None)
            store_and_offer(notifier, log, recent(1))
            await until(lambda: len(log.delivered) == 2)
            [status] = notifier.status()
            assert (status.retries_total, status.delivered_total) == (1, 1)
            assert "answered 503" in str(status.last_error)

    with receiving() as receiver:
        receiver.answer(Answer(503))
        asyncio.run(story(receiver))
        refused, taken = receiver.received
    assert gpus_of(refused) == ["0"]
    assert gpus_of(taken) == ["0", "1"]
    assert taken.at - refused.at >= 0.5  # the first pause of 1 s, shortened by half by chance


def test_retry_after_is_respected() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, slack(receiver)) as notifier:
            store_and_offer(notifier, log, recent())
            await until(lambda: len(log.delivered) == 1)

    with receiving() as receiver:
        receiver.answer(Answer(429, {"Retry-After": "1"}))
        asyncio.run(story(receiver))
        refused, taken = receiver.received
    assert taken.at - refused.at >= 1.0


def test_a_dead_channel_does_not_delay_another() -> None:
    log = MemoryLog()

    async def story(dead: Receiver, alive: Receiver) -> None:
        async with notifying(log, slack(dead), webhook(alive)) as notifier:
            offered_at = time.monotonic()
            for number in range(5):
                store_and_offer(notifier, log, recent(run=f"run{number}"))
            await until(lambda: len(alive.received) == 5)
            assert time.monotonic() - offered_at < DEADLINE_SECONDS
            of_slack, of_webhook = notifier.status()
            assert (of_slack.queue_length, of_slack.delivered_total) == (5, 0)
            await until(lambda: notifier.status()[1].queue_length == 0)
            assert of_webhook.last_error is None

    with receiving() as dead, receiving() as alive:
        dead.always(Answer(503, {"Retry-After": "3600"}))
        asyncio.run(story(dead, alive))
        assert len(dead.received) == 1


def test_a_message_that_is_refused_for_good_is_given_up_and_the_next_is_sent() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            store_and_offer(notifier, log, recent(run="one"))
            await until(lambda: notifier.status()[0].failed_total == 1)
            store_and_offer(notifier, log, recent(run="two"))
            await until(lambda: len(log.delivered) == 1)

    with receiving() as receiver:
        receiver.answer(Answer(400))
        asyncio.run(story(receiver))
        assert [request.json()["groupLabels"]["run"] for request in receiver.received] == ["one", "two"]


def test_a_restart_sends_again_what_was_not_delivered_and_nothing_else() -> None:
    log = MemoryLog()
    old = transition(9, at=time.time() - 4000)

    async def before(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            store_and_offer(notifier, log, recent(0, run="told"))
            await until(lambda: len(log.delivered) == 1)
            receiver.always(Answer(503))
            store_and_offer(notifier, log, recent(1, run="untold"))
            await until(lambda: notifier.status()[0].retries_total == 1)

    async def after(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            await until(lambda: len(log.delivered) == 2)
            await nothing_waits(notifier)

    with receiving() as receiver:
        asyncio.run(before(receiver))
    log.stored.append(old)
    with receiving() as receiver:
        asyncio.run(after(receiver))
        [request] = receiver.received
    assert request.json()["groupLabels"]["run"] == "untold"


def test_what_is_offered_while_the_rest_is_recovered_is_sent_once() -> None:
    log = MemoryLog()
    news = recent(0)
    log.stored.append(news)

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver), before=[news]) as notifier:
            await until(lambda: len(log.delivered) == 1)
            await nothing_waits(notifier)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        assert [gpus_of(request) for request in receiver.received] == [["0"]]


def test_a_broken_store_stops_no_message_and_marks_are_made_up_for() -> None:
    log = MemoryLog()
    log.broken = True

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            store_and_offer(notifier, log, recent(0, run="one"))
            await until(lambda: notifier.status()[0].delivered_total == 1)
            log.broken = False
            store_and_offer(notifier, log, recent(0, run="two"))
            await until(lambda: len(log.delivered) == 2)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        assert len(receiver.received) == 2


def test_pending_alerts_are_never_sent() -> None:
    log = MemoryLog()
    log.stored.append(recent(7, state="pending"))

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            notifier.offer([recent(0, state="pending"), recent(1)])
            await until(lambda: len(receiver.received) == 1)
            await nothing_waits(notifier)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        assert [gpus_of(request) for request in receiver.received] == [["1"]]


def test_a_channel_gets_its_severity_and_above_and_resolutions_only_if_it_wants_them() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        channel = webhook(receiver, severity="critical", send_resolved=False)
        async with notifying(log, channel) as notifier:
            notifier.offer([recent(0, severity="info"), recent(1, severity="warning"), recent(2, severity="critical")])
            notifier.offer([recent(3, severity="critical", state="resolved")])
            await until(lambda: len(receiver.received) == 1)
            await nothing_waits(notifier)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        assert [gpus_of(request) for request in receiver.received] == [["2"]]


def test_slack_is_sent_at_most_one_message_a_second() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, slack(receiver)) as notifier:
            notifier.offer([recent(run="one"), recent(run="two")])
            await until(lambda: len(receiver.received) == 2)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        first, second = receiver.received
    assert second.at - first.at >= 0.95


def test_signed_webhooks_carry_a_signature() -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver, secret=Secret(KEY))) as notifier:
            notifier.offer([recent()])
            await until(lambda: notifier.status()[0].delivered_total == 1)

    with receiving() as receiver:
        asyncio.run(story(receiver))
        [request] = receiver.received
    assert request.headers["webhook-id"].startswith("msg_")
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    assert request.headers["webhook-signature"].startswith("v1,")


def test_a_message_on_its_way_when_the_server_stops_is_waited_for_and_marked() -> None:
    log = MemoryLog()
    answered = threading.Event()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            store_and_offer(notifier, log, recent())
            await until(lambda: len(receiver.received) == 1)
            asyncio.get_running_loop().call_later(0.1, answered.set)

    with receiving() as receiver:
        receiver.always(Answer(hold=answered))
        asyncio.run(story(receiver))
    assert len(log.delivered) == 1


def test_a_success_ends_the_row_of_failures(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()

    async def story(receiver: Receiver) -> None:
        async with notifying(log, webhook(receiver)) as notifier:
            for run in ("one", "two"):
                store_and_offer(notifier, log, recent(run=run))
                await until(lambda: notifier.status()[0].queue_length == 0)

    with receiving() as receiver:
        receiver.answer(Answer(503), Answer(200), Answer(503), Answer(200))
        asyncio.run(story(receiver))
    pauses = [record.getMessage().rsplit("; ", 1)[1] for record in caplog.records]
    assert pauses == ["trying again in 0.5 s", "trying again in 0.5 s"]
