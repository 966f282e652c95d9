"""Sends to an OpenTelemetry collector, over HTTP, by OpenTelemetry's own exporter, which also tries again.

Headers, certificates and compression are set as for any other program: OTEL_EXPORTER_OTLP_HEADERS and its kin.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from oomwatch.options import SettingError
from oomwatch.senders.sending import Counts, OwnUp, Read, always, every

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import export as sdk

PATH = "/v1/metrics"
# The units that names end in, as OpenTelemetry writes them (UCUM).
UNITS = {"bytes": "By", "seconds": "s", "ratio": "1", "celsius": "Cel", "watts": "W"}


class Otlp(Counts):
    def __init__(
        self,
        endpoint: str,
        read: Read,
        own_up: OwnUp,
        *,
        resource: Mapping[str, str],
        interval_seconds: float,
        started_at: float,
        on_duty: Callable[[], bool] = always,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__("otlp")
        self._exporter = _exporter(endpoint_of(endpoint))
        self._read = read
        self._own_up = own_up
        self._resource = dict(resource)
        self._interval_seconds = interval_seconds
        self._on_duty = on_duty
        self._started_ns = int(started_at * 1e9)
        self._clock = clock
        self.waiting = 0  # one moment at a time: what cannot be sent before the next one is dropped

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await every(self._interval_seconds, self._send, self.name, self._own_up, self._on_duty)
        finally:
            await asyncio.to_thread(self._exporter.shutdown)  # which ends a sending that is under way

    async def _send(self) -> None:
        made, now_ns = self._read(), int(self._clock() * 1e9)
        samples, is_taken = await asyncio.to_thread(lambda: self._export(made(), now_ns))
        if is_taken:
            self.succeed(samples)
        else:
            self.fail("the collector did not take it; OpenTelemetry's log says why")
            self.dropped_total += samples

    def _export(self, told: Sequence[Metric], now_ns: int) -> tuple[int, bool]:
        """How many samples there were, and whether they were taken."""
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415 - of an extra

        result = self._exporter.export(metrics_data(told, self._resource, self._started_ns, now_ns))
        return sum(len(metric.samples) for metric in told), result is MetricExportResult.SUCCESS


def endpoint_of(address: str) -> str:
    """The address that metrics are posted to: its own path, or the usual one."""
    parts = urlsplit(address)
    return address if parts.path.strip("/") else parts._replace(path=PATH).geturl()


def _exporter(endpoint: str) -> "sdk.MetricExporter":
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    except ImportError as error:
        raise SettingError('otlp_endpoint: this needs OpenTelemetry: pip install "oomwatch[otlp]"') from error
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)  # at WARNING it tells of every single attempt
    return OTLPMetricExporter(endpoint=endpoint)


def metrics_data(told: Sequence[Metric], resource: dict[str, str], started_ns: int, now_ns: int) -> "sdk.MetricsData":
    """The families as OpenTelemetry has them: gauges, sums that only grow, and histograms."""
    from opentelemetry.sdk.metrics import export as sdk  # noqa: PLC0415 - of an extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    scope = InstrumentationScope("oomwatch")
    metrics = [
        sdk.Metric(_name(metric), metric.documentation, _unit(metric), _data(metric, started_ns, now_ns))
        for metric in told
        if metric.samples
    ]
    scopes = [sdk.ScopeMetrics(scope, metrics, schema_url="")]
    return sdk.MetricsData([sdk.ResourceMetrics(Resource(resource), scopes, schema_url="")])


def _name(metric: Metric) -> str:
    """OpenTelemetry's collectors put `_total` behind a sum themselves, as Prometheus' clients do."""
    return f"{metric.name}_info" if metric.type == "info" else str(metric.name)


def _unit(metric: Metric) -> str:
    return UNITS.get(metric.name.rsplit("_", 1)[-1], "")


def _data(metric: Metric, started_ns: int, now_ns: int) -> "sdk.Sum | sdk.Gauge | sdk.Histogram":
    from opentelemetry.sdk.metrics import export as sdk  # noqa: PLC0415 - of an extra

    if metric.type == "histogram":
        point = _histogram(metric.samples, started_ns, now_ns)
        return sdk.Histogram([point], sdk.AggregationTemporality.CUMULATIVE)
    points = [sdk.NumberDataPoint(_attributes(one), started_ns, now_ns, float(one.value)) for one in metric.samples]
    if metric.type == "counter":
        return sdk.Sum(points, sdk.AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return sdk.Gauge(points)


def _attributes(sample: Sample) -> dict[str, str]:
    return {label: value for label, value in sample.labels.items() if value}


def _histogram(samples: Sequence[Sample], started_ns: int, now_ns: int) -> "sdk.HistogramDataPoint":
    """Prometheus' counts are of all up to each bound, OpenTelemetry's of each bucket alone."""
    from opentelemetry.sdk.metrics import export as sdk  # noqa: PLC0415 - of an extra

    bounds = [(float(one.labels["le"]), int(one.value)) for one in samples if one.name.endswith("_bucket")]
    total = next(float(one.value) for one in samples if one.name.endswith("_sum"))
    return sdk.HistogramDataPoint(
        attributes={},
        start_time_unix_nano=started_ns,
        time_unix_nano=now_ns,
        count=bounds[-1][1],
        sum=total,
        bucket_counts=list(_each([count for _, count in bounds])),
        explicit_bounds=[bound for bound, _ in bounds[:-1]],
        min=None,  # type: ignore[arg-type]  # optional in the protocol, though not in the SDK's types
        max=None,  # type: ignore[arg-type]
    )


def _each(cumulative: Sequence[int]) -> Iterator[int]:
    before = 0
    for count in cumulative:
        yield count - before
        before = count
