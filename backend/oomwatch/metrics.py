"""/metrics: computed from the fleet at each scrape, so that nothing has to be kept up to date in between.

What is not known is not exported: a gap in a graph says more than a 0.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from oomwatch import __version__
from oomwatch.core.allocator import TOGETHER_PID, UNKNOWN, Allocator, plus
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.hostmemory import tightest
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.signals.of_run import last_step
from oomwatch.core.window import WINDOW_SECONDS_MAX
from oomwatch.service.service import Service
from oomwatch.service.views import ENGINES_SHOWN_SECONDS, state_of

OF_GPU = ("node", "gpu")
OF_TORCH = ("node", "gpu", "run", "role")  # without a probe there is no role
OF_ENGINE = ("node", "engine", "address", "run")
Rows = Iterable[tuple[Sequence[str], float | None]]


class ChannelCounts(Protocol):
    """What is told of a notification channel."""

    @property
    def name(self) -> str: ...
    @property
    def delivered_total(self) -> int: ...
    @property
    def failed_total(self) -> int: ...
    @property
    def dropped_total(self) -> int: ...


class Metrics:
    """The page that Prometheus reads. `channels` gives how the notification channels fare."""

    def __init__(self, service: Service, channels: Callable[[], Iterable[ChannelCounts]]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Fleet(service, channels))
        ProcessCollector(registry=self._registry)

    def page(self) -> bytes:
        """Prometheus' text format, as of now."""
        return generate_latest(self._registry)


class _Fleet(Collector):
    def __init__(self, service: Service, channels: Callable[[], Iterable[ChannelCounts]]) -> None:
        self._service = service
        self._channels = channels

    def describe(self) -> Iterable[Metric]:
        """Nothing is computed when the collector is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = self._service.clock()
        nodes = list(self._service.engine.fleet.nodes.values())
        runs = list(self._service.engine.fleet.runs.values())
        yield from _gpus(nodes, now)
        yield from _hosts(nodes, now)
        yield from self._torch(now)
        yield from _engines(nodes, now)
        yield from _runs(runs)
        yield from self._alerts()
        yield from self._agents(nodes, now)
        yield from self._server()

    def _torch(self, now: float) -> Iterator[Metric]:
        fresh = dict(_probed(self._service.engine.fleet.nodes.values(), now))
        probed = {key[:2] for key in fresh}
        for (node, gpu, run), point in self._service.picture.torch_latest.items():
            if now - point.at <= WINDOW_SECONDS_MAX and (node, gpu) not in probed:
                memory = point.memory
                fresh[node, gpu or "", run or "", ""] = Allocator(memory.reserved_bytes, memory.allocated_bytes)
        yield _gauge("oomwatch_torch_reserved_bytes", "Memory that torch's allocator has reserved.", OF_TORCH,
                     ((key, sums.reserved_bytes) for key, sums in fresh.items()))  # fmt: skip
        yield _gauge("oomwatch_torch_allocated_bytes", "Memory that tensors hold, of what torch has reserved.",
                     OF_TORCH, ((key, sums.allocated_bytes) for key, sums in fresh.items()))  # fmt: skip
        yield _counter("oomwatch_torch_alloc_retries", "Times that torch's allocator flushed its cache to survive.",
                       OF_TORCH, ((key, sums.alloc_retries_total) for key, sums in fresh.items()))  # fmt: skip

    def _alerts(self) -> Iterator[Metric]:
        counts = {(rule.alert, rule.severity): 0 for rule in self._service.engine.rules.rules if rule.enabled}
        for episode in self._service.engine.episodes():
            if episode.fired_at is not None:
                key = (episode.rule.alert, episode.rule.severity)
                counts[key] = counts.get(key, 0) + 1
        yield _gauge("oomwatch_alerts_firing", "Alerts that fire now.", ("alert", "severity"), counts.items())

    def _agents(self, nodes: list[NodeRecord], now: float) -> Iterator[Metric]:
        heard = [(node.name, state_of(node, now) == "live") for node in nodes if not node.stopped]
        yield _gauge("oomwatch_agent_up", "1 while the node's agent is heard; absent once it stopped on purpose.",
                     ("node",), (((name,), float(is_live)) for name, is_live in heard))  # fmt: skip
        sessions = list(self._service.roster)
        yield _gauge("oomwatch_agent_skew_seconds", "The agent's clock minus the server's, corrected for.", ("node",),
                     (((session.node,), session.skew_seconds) for session in sessions))  # fmt: skip
        yield _counter("oomwatch_agent_messages", "Messages received from the agent since it started.", ("node",),
                       (((session.node,), session.messages_total) for session in sessions))  # fmt: skip

    def _server(self) -> Iterator[Metric]:
        service = self._service
        yield _counter("oomwatch_messages_unknown", "Messages of a type newer than this server; skipped.", (),
                       [((), service.reception.unknown_total)])  # fmt: skip
        yield _counter("oomwatch_messages_malformed", "Frames that broke the protocol; skipped.", (),
                       [((), service.reception.malformed_total)])  # fmt: skip
        yield _counter("oomwatch_failures", "Defects of the server itself; each is in its log.", (),
                       [((), service.defects.total)])  # fmt: skip
        yield _counter("oomwatch_notifications", "Messages to notification channels, by what became of them.",
                       ("channel", "outcome"), _outcomes(self._channels()))  # fmt: skip
        yield _gauge("oomwatch_rules_reload_failed", "1 while the rule file has mistakes and older rules are in force.",
                     (), [((), float(service.rules_error is not None))])  # fmt: skip
        yield _gauge("oomwatch_store_failed", "1 while the database cannot be written.", (),
                     [((), float(service.journal.problem is not None))])  # fmt: skip
        build = InfoMetricFamily("oomwatch_build", "The server's version.")
        build.add_metric((), {"version": __version__})
        yield build


def _gauge(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    _add(family, rows)
    return family


def _counter(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)  # the text format puts _total behind the name
    _add(family, rows)
    return family


def _add(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows) -> None:
    for labels, value in rows:
        if value is not None:
            family.add_metric(labels, value)


def _gpus(nodes: list[NodeRecord], now: float) -> Iterator[Metric]:
    gpus = [((node.name, gpu.facts.gpu), gpu) for node in nodes for gpu in node.gpus.values()]
    fresh = [
        ((node.name, gpu.facts.gpu), gpu.sample)
        for node in nodes
        for gpu in node.gpus.values()
        if gpu.sample is not None and _answers(gpu, node, now)
    ]
    yield _gauge("oomwatch_gpu_memory_used_bytes", "Device memory in use.", OF_GPU,
                 ((key, sample.used_bytes) for key, sample in fresh))  # fmt: skip
    yield _gauge("oomwatch_gpu_memory_usable_bytes", "Device memory without what the driver keeps for itself.", OF_GPU,
                 ((key, gpu.usable_bytes) for key, gpu in gpus))  # fmt: skip
    yield _gauge("oomwatch_gpu_utilization_ratio", "Share of time in which a kernel ran.", OF_GPU,
                 ((key, sample.utilization_ratio) for key, sample in fresh))  # fmt: skip
    yield _gauge("oomwatch_gpu_power_watts", "Power draw.", OF_GPU,
                 ((key, sample.power_watts) for key, sample in fresh))  # fmt: skip
    yield _gauge("oomwatch_gpu_temperature_celsius", "Temperature.", OF_GPU,
                 ((key, sample.temperature_celsius) for key, sample in fresh))  # fmt: skip
    info = InfoMetricFamily("oomwatch_gpu", "What a GPU is.", labels=OF_GPU)
    for key, gpu in gpus:
        info.add_metric(key, {"uuid": gpu.facts.uuid, "name": gpu.facts.name, "driver": gpu.facts.driver_version or ""})
    yield info


def _answers(gpu: GpuRecord, node: NodeRecord, now: float) -> bool:
    return gpu.status == "ok" and now - gpu.at <= node.stale_after_seconds


def _hosts(nodes: list[NodeRecord], now: float) -> Iterator[Metric]:
    fresh = [(node.name, *use) for node in nodes if (use := _tightest(node, now))]
    yield _gauge("oomwatch_host_memory_used_bytes",
                 "Host memory in use, of the machine or of the container, whichever is nearer to its limit.", ("node",),
                 (((name,), used) for name, used, _ in fresh))  # fmt: skip
    yield _gauge("oomwatch_host_memory_limit_bytes", "The limit that belongs to it.", ("node",),
                 (((name,), limit) for name, _, limit in fresh))  # fmt: skip


def _tightest(node: NodeRecord, now: float) -> tuple[int, int] | None:
    """Used and limit of what would fill first, as the rules see it."""
    facts, host = node.hello.facts.host, node.host
    if facts is None or host is None or now - node.host_at > node.stale_after_seconds:
        return None
    use = tightest(host, facts)
    return (use.used_bytes, use.limit_bytes) if use else None


def _probed(nodes: Iterable[NodeRecord], now: float) -> Iterator[tuple[tuple[str, str, str, str], Allocator]]:
    """Sums over the processes of each role on each GPU that a probe is on."""
    for node in nodes:
        sums: dict[tuple[str, str, str, str], Allocator] = {}
        for reading in node.torch:
            gpu = node.gpus.get(reading.gpu or "")
            if gpu is not None and reading.pid != TOGETHER_PID and now - gpu.probed_at <= node.stale_after_seconds:
                key = (node.name, gpu.facts.gpu, reading.run or gpu.run or "", reading.role or "")
                sums[key] = plus(sums.get(key, UNKNOWN), reading)
        yield from sums.items()


def _engines(nodes: list[NodeRecord], now: float) -> Iterator[Metric]:
    heard = [
        ((node.name, engine.engine, engine.address, engine.run or ""), engine)
        for node in nodes
        if now - node.engines_at <= ENGINES_SHOWN_SECONDS
        for engine in node.engines
    ]
    yield _gauge("oomwatch_kv_cache_used_ratio", "Share of the rollout engine's KV cache in use.", OF_ENGINE,
                 ((key, engine.kv_used_ratio) for key, engine in heard))  # fmt: skip
    yield _gauge("oomwatch_engine_requests_running", "Requests that the engine works on.", OF_ENGINE,
                 ((key, engine.requests_running) for key, engine in heard))  # fmt: skip
    yield _gauge("oomwatch_engine_requests_waiting", "Requests that wait for room in the engine.", OF_ENGINE,
                 ((key, engine.requests_waiting) for key, engine in heard))  # fmt: skip
    yield _counter("oomwatch_engine_preemptions", "Requests that the engine put back for want of room (SGLang: "
                   "retractions).", OF_ENGINE,
                   ((key, engine.preemptions_total) for key, engine in heard))  # fmt: skip


def _runs(runs: list[RunRecord]) -> Iterator[Metric]:
    lasts = [(run.name, last_step(run, lambda _: 0.0)) for run in runs]
    steps = [(name, last.step) for name, last in lasts if last is not None]
    yield _gauge("oomwatch_step", "Number of the last training step.", ("run",),
                 (((name,), step.step) for name, step in steps))  # fmt: skip
    yield _gauge("oomwatch_step_seconds", "Duration of the last training step.", ("run",),
                 (((name,), step.step_seconds) for name, step in steps))  # fmt: skip
    yield _gauge("oomwatch_rollout_seconds", "Rollout time of the last training step.", ("run",),
                 (((name,), step.rollout_seconds) for name, step in steps))  # fmt: skip
    yield _counter("oomwatch_reshard_cycles", "Switches from training to rollout since first sight.", ("run",),
                   (((run.name,), run.cycles_total() if run.cycle_marker() else None) for run in runs))  # fmt: skip


def _outcomes(channels: Iterable[ChannelCounts]) -> Rows:
    for channel in channels:
        yield (channel.name, "delivered"), channel.delivered_total
        yield (channel.name, "failed"), channel.failed_total
        yield (channel.name, "dropped"), channel.dropped_total
