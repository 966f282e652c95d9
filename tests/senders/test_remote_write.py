"""The sender of remote write, against a receiver that answers as it is told, and against a real Prometheus."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cramjam
import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from tests.prometheus.servers import prometheus, scraping
from tests.senders.write_request_schema import read
from tests.server.house import hello, sample
from tests.server.receiver import Answer, Received, Receiver, receiving
from tests.server.running_server import DEADLINE_SECONDS, AgentClient, serving, settings_in, until

from oomwatch.options import SettingError
from oomwatch.senders.batches import Queue
from oomwatch.senders.remote_write import RemoteWrite, remote_client
from oomwatch.senders.sending import Read

ENOUGH = 50  # batches; a test ends long before


def one_gauge() -> Callable[[], Sequence[Metric]]:
    family = GaugeMetricFamily("used_bytes", "Used.")
    family.add_metric((), 7)
    return lambda: [family]


class Writing:
    """A sender whose pauses are short, and what it counted."""

    def __init__(self, receiver: Receiver, read: Read = one_gauge) -> None:
        self.defects = 0
        self.sender = RemoteWrite(
            remote_client("s3cret"),
            f"{receiver.url}/api/v1/write",
            read,
            self._own_up,
            labels={"job": "oomwatch"},
            interval_seconds=0.02,
            chance=lambda: 1.0,
        )

    def _own_up(self) -> None:
        self.defects += 1

    def until(self, what: Callable[[], bool]) -> None:
        """Run until something is so."""

        async def run() -> None:
            task = asyncio.create_task(self.sender.run())
            deadline = time.monotonic() + DEADLINE_SECONDS
            while not what() and not task.done():
                assert time.monotonic() < deadline, "waited in vain"
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(run())


def series(received: Received) -> list[tuple[dict[str, str], float, int]]:
    return read(bytes(cramjam.snappy.decompress_raw(received.body)))


def test_a_batch_is_posted_as_the_specification_says() -> None:
    with receiving() as receiver:
        writing = Writing(receiver)
        before = time.time()
        writing.until(lambda: writing.sender.sent_total >= 1)
        first = receiver.received[0]
    assert first.path == "/api/v1/write"
    assert first.headers["content-type"] == "application/x-protobuf"
    assert first.headers["content-encoding"] == "snappy"
    assert first.headers["x-prometheus-remote-write-version"] == "0.1.0"
    assert first.headers["authorization"] == "Bearer s3cret"
    ((labels, value, at_ms),) = series(first)
    assert (labels, value) == ({"__name__": "used_bytes", "job": "oomwatch"}, 7)
    assert before - 1 <= at_ms / 1000 <= time.time()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_be_taken_later_is_sent_again_as_it_was_and_in_its_order(status: int) -> None:
    with receiving() as receiver:
        receiver.answer(Answer(status, {"Retry-After": "0"}))
        writing = Writing(receiver)
        writing.until(lambda: writing.sender.sent_total >= 3)
        first, again, *others = receiver.received
    assert again.body == first.body
    times = [series(one)[0][2] for one in (again, *others)]
    assert times == sorted(times)
    assert (writing.sender.refused_total, writing.sender.problem, writing.defects) == (0, None, 0)


def test_a_store_that_asks_to_be_left_alone_for_a_while_is() -> None:
    with receiving() as receiver:
        receiver.answer(Answer(429, {"Retry-After": "1"}))
        writing = Writing(receiver)
        writing.until(lambda: len(receiver.received) >= 2)
        first, second = receiver.received[:2]
    assert second.at - first.at >= 1.0


def test_what_is_refused_for_good_is_counted_and_the_next_one_goes_out() -> None:
    with receiving() as receiver:
        receiver.answer(Answer(400, body=b"out of order sample"))
        writing = Writing(receiver)
        writing.until(lambda: writing.sender.sent_total >= 1)
        first, second = receiver.received[:2]
    assert writing.sender.refused_total == 1
    assert second.body != first.body


def test_a_redirect_is_not_followed_for_it_would_take_the_token_along() -> None:
    with receiving() as receiver, receiving() as elsewhere:
        receiver.always(Answer(307, {"Location": elsewhere.url}))
        writing = Writing(receiver)
        writing.until(lambda: writing.sender.refused_total >= 1)
        assert elsewhere.received == []
    assert "307" in str(writing.sender.problem)


def test_a_store_that_is_not_there_is_told_of_and_nothing_breaks() -> None:
    with receiving() as receiver:
        writing = Writing(receiver)
    writing.until(lambda: writing.sender.problem is not None)
    assert "does not answer: Connection refused; does the server run there" in str(writing.sender.problem)
    assert writing.defects == 0


def test_certificates_that_cannot_be_loaded_are_a_mistake_with_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "authorities.pem"
    broken.write_text("none")
    monkeypatch.setenv("SSL_CERT_FILE", str(broken))
    with pytest.raises(SettingError, match=f"remote_write_url: .*{broken}, which SSL_CERT_FILE names"):
        remote_client(None)


def test_what_finds_no_room_while_the_store_is_down_is_dropped_and_counted() -> None:
    with receiving() as receiver:
        receiver.always(Answer(503))
        writing = Writing(receiver)
        writing.sender._queue = Queue(batches_max=2)
        writing.until(lambda: writing.sender.dropped_total >= 3)
    assert writing.sender.waiting == 2
    assert writing.sender.sent_total == 0


def test_a_defect_while_reading_costs_one_round_and_is_counted() -> None:
    rounds = iter(range(ENOUGH))

    def reading() -> Callable[[], Sequence[Metric]]:
        if next(rounds) == 0:
            raise ZeroDivisionError
        return one_gauge()

    with receiving() as receiver:
        writing = Writing(receiver, reading)
        writing.until(lambda: writing.sender.sent_total >= 1)
    assert writing.defects == 1


def test_the_series_of_a_real_server_can_be_asked_of_a_real_prometheus(tmp_path: Path) -> None:
    with prometheus(scraping(), flags=("--web.enable-remote-write-receiver",)) as store:
        url = f"{store.url}/api/v1/write"
        settings = settings_in(tmp_path, remote_write_url=url, remote_write_interval=1.0)
        with serving(settings) as server, AgentClient(server) as agent:
            agent.greet(hello())
            agent.say(sample(1, 40))
            (used,) = store.wait_for('oomwatch_gpu_memory_used_bytes{job="oomwatch"}')
            assert (used.labels["node"], used.labels["gpu"], used.value) == ("gpu-07", "0", 40 * 2**30)
            assert used.labels["instance"]
            assert store.wait_for("oomwatch_ingest_lag_seconds_bucket")
            sent = 'oomwatch_export_samples_total{outcome="sent",to="remote write"}'
            assert store.wait_for(f"{sent} > 0")
            page = until("the count", lambda: server.get("/metrics").text)
            assert 'oomwatch_export_failed{to="remote write"} 0.0' in page
            assert 'outcome="refused",to="remote write"} 0.0' in page
