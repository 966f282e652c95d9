"""Families as bodies of remote write, and the queue in which they wait."""

import asyncio
import math
import struct

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from tests.senders.write_request_schema import read

from oomwatch.senders.batches import SAMPLES_MAX, Batch, Packer, Queue
from oomwatch.senders.write_request import STALE

ADDED = {"job": "oomwatch", "instance": "host:8642"}


def gauge(values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily("used_bytes", "Used.", labels=("node", "run"))
    for node, value in values.items():
        family.add_metric((node, ""), value)
    return family


def packer() -> Packer:
    return Packer(ADDED, lambda body: body)


def test_each_series_has_its_labels_sorted_its_value_and_the_time_and_none_that_is_empty() -> None:
    total = CounterMetricFamily("sent", "Sent.", labels=("zone",))
    total.add_metric(("a",), 3)
    (batch,) = packer().pack([gauge({"ünïcode": 1.5e300}), total], 1_700_000_000_123)
    used, sent = read(batch.body)
    assert used == ({"__name__": "used_bytes", "node": "ünïcode", **ADDED}, 1.5e300, 1_700_000_000_123)
    assert sent == ({"__name__": "sent_total", "zone": "a", **ADDED}, 3.0, 1_700_000_000_123)
    assert list(used[0]) == sorted(used[0])
    assert batch.samples == 2


def test_a_series_that_is_gone_is_said_to_have_ended_once() -> None:
    one = packer()
    one.pack([gauge({"a": 1, "b": 2})], 1000)
    (batch,) = one.pack([gauge({"b": 3})], 2000)
    kept, ended = read(batch.body)
    assert (kept[0]["node"], kept[1]) == ("b", 3)
    assert (ended[0]["node"], ended[2]) == ("a", 2000)
    assert struct.pack(">d", ended[1]).hex() == "7ff0000000000002" == struct.pack(">d", STALE).hex()
    (batch,) = one.pack([gauge({"b": 3})], 3000)
    assert [labels["node"] for labels, _, _ in read(batch.body)] == ["b"]


def test_values_that_are_no_numbers_and_long_labels_arrive_as_they_are() -> None:
    (batch,) = packer().pack([gauge({"x" * 300: math.inf, "nan": math.nan})], 1)
    endless, unknown = read(batch.body)
    assert endless[0]["node"] == "x" * 300
    assert endless[1] == math.inf
    assert math.isnan(unknown[1])


def test_many_series_are_several_batches() -> None:
    batches = packer().pack([gauge({f"n{number}": number for number in range(2 * SAMPLES_MAX + 1)})], 1)
    assert [batch.samples for batch in batches] == [SAMPLES_MAX, SAMPLES_MAX, 1]
    assert sum(len(read(batch.body)) for batch in batches) == 2 * SAMPLES_MAX + 1


def test_a_full_queue_lets_the_oldest_go_and_says_how_many_samples_that_were() -> None:
    async def story() -> None:
        queue = Queue(batches_max=2)
        assert queue.put([Batch(b"1", 10)]) == 0
        assert queue.put([Batch(b"2", 20), Batch(b"3", 30)]) == 10
        assert [(await queue.next()).body, (await queue.next()).body, len(queue)] == [b"2", b"3", 0]

    asyncio.run(story())


def test_who_waits_at_an_empty_queue_is_given_what_comes() -> None:
    async def story() -> Batch:
        queue = Queue()
        waiting = asyncio.create_task(queue.next())
        await asyncio.sleep(0)
        queue.put([Batch(b"1", 1)])
        return await waiting

    assert asyncio.run(story()).body == b"1"
