"""The sender of OTLP, against a receiver that reads what it is sent with OpenTelemetry's own messages."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from tests.server.house import hello, sample
from tests.server.receiver import Answer, Received, receiving
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch.senders.otlp import endpoint_of


def request_of(received: Received) -> Any:
    body = gzip.decompress(received.body) if received.headers.get("content-encoding") == "gzip" else received.body
    return ExportMetricsServiceRequest.FromString(body)


def metrics_of(received: Received) -> Mapping[str, Any]:
    (resource,) = request_of(received).resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def attributes(told: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in told.attributes}


def test_the_families_arrive_as_gauges_sums_and_histograms(tmp_path: Path) -> None:
    with receiving() as collector:
        settings = settings_in(tmp_path, otlp_endpoint=collector.url, otlp_interval=1.0)
        with serving(settings) as server, AgentClient(server) as agent:
            agent.greet(hello())
            agent.say(sample(1, 40))
            with_reading = until(
                "a reading",
                lambda: next((one for one in collector.received if "oomwatch_gpu_used_ratio" in metrics_of(one)), None),
            )
            until("the count", lambda: 'outcome="sent",to="otlp"} 0.0' not in server.get("/metrics").text)
    assert with_reading.path == "/v1/metrics"
    (resource,) = request_of(with_reading).resource_metrics
    assert attributes(resource.resource)["service.name"] == "oomwatch"
    metrics = metrics_of(with_reading)
    (ratio,) = metrics["oomwatch_gpu_used_ratio"].gauge.data_points
    assert (attributes(ratio), ratio.as_double) == ({"node": "gpu-07", "gpu": "0"}, 0.5)
    assert metrics["oomwatch_gpu_used_ratio"].unit == "1"
    assert metrics["oomwatch_gpu_memory_used_bytes"].unit == "By"
    messages = metrics["oomwatch_agent_messages"].sum
    assert messages.is_monotonic
    assert messages.data_points[0].as_double == 1
    assert 0 < messages.data_points[0].start_time_unix_nano < messages.data_points[0].time_unix_nano
    (lag,) = metrics["oomwatch_ingest_lag_seconds"].histogram.data_points
    assert sum(lag.bucket_counts) == lag.count == 1
    assert len(lag.bucket_counts) == len(lag.explicit_bounds) + 1
    assert not lag.HasField("min")
    assert attributes(metrics["oomwatch_build_info"].gauge.data_points[0])["version"]


def test_a_collector_that_refuses_is_told_of_and_the_server_goes_on(tmp_path: Path) -> None:
    with receiving() as collector:
        collector.always(Answer(400))
        with serving(settings_in(tmp_path, otlp_endpoint=collector.url, otlp_interval=1.0)) as server:
            until("the failure", lambda: 'oomwatch_export_failed{to="otlp"} 1.0' in server.get("/metrics").text)
            assert server.get("/readyz").status_code == 200
            assert server.parts.service.defects.total == 0


@pytest.mark.parametrize(
    ("given", "posted_to"),
    [
        ("http://collector:4318", "http://collector:4318/v1/metrics"),
        ("http://collector:4318/", "http://collector:4318/v1/metrics"),
        ("https://gateway/otlp/v1/metrics", "https://gateway/otlp/v1/metrics"),
    ],
)
def test_an_address_without_a_path_is_given_the_usual_one(given: str, posted_to: str) -> None:
    assert endpoint_of(given) == posted_to
