"""What vLLM and SGLang call the figures that oomwatch takes from them. PURE.

vLLM
    vllm/v1/metrics/loggers.py, PrometheusStatLogger (labels model_name, engine; one `engine` for every data-parallel
    replica). `kv_cache_usage_perc` (1 is full) replaced `gpu_cache_usage_perc`; releases in between have both. The
    engine of vLLM 0 (vllm/engine/metrics.py) labelled model_name only.
SGLang
    python/sglang/srt/metrics/collector.py, since moved to srt/observability/metrics_collector.py,
    SchedulerMetricsCollector (labels model_name, engine_type, tp_rank, pp_rank and, where there are several replicas,
    dp_rank). With --enable-metrics-for-all-schedulers every rank of one replica tells the same, and with priorities
    there is a line for each beside the sum. The counter `num_retracted_requests_total` is in newer releases; the gauge
    `num_retracted_reqs` tells of the last batch only and is no total, so that it is not taken.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch_agent.engines.exposition import Metric

Engine: TypeAlias = Literal["vllm", "sglang"]
Field: TypeAlias = Literal["kv_used_ratio", "requests_running", "requests_waiting", "preemptions_total"]


class _Names(msgspec.Struct, frozen=True):
    """Metric names by field, best first, and the label that tells data-parallel replicas apart."""

    fields: Mapping[Field, tuple[str, ...]]
    replica: str


_ENGINES: Mapping[Engine, _Names] = {
    "vllm": _Names(
        {
            "kv_used_ratio": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
            "requests_running": ("vllm:num_requests_running",),
            "requests_waiting": ("vllm:num_requests_waiting",),
            "preemptions_total": ("vllm:num_preemptions_total",),
        },
        "engine",
    ),
    "sglang": _Names(
        {
            "kv_used_ratio": ("sglang:token_usage",),
            "requests_running": ("sglang:num_running_reqs",),
            "requests_waiting": ("sglang:num_queue_reqs",),
            "preemptions_total": ("sglang:num_retracted_requests_total",),
        },
        "dp_rank",
    ),
}
WANTED = frozenset(
    name for engine in _ENGINES.values() for alternatives in engine.fields.values() for name in alternatives
)


def samples(metrics: Iterable[Metric], address: str) -> tuple[wire.EngineSample, ...]:
    """One sample for each engine that these metrics are of: none, one, or (behind a gateway) both.

    Replicas behind one address are one engine here: requests and preemptions are added up, of the KV caches the
    fullest counts. Ranks of one replica that tell the same are counted once: the highest.
    """
    listed = list(metrics)
    found = ((engine, _figures(listed, names)) for engine, names in _ENGINES.items())
    return tuple(
        wire.EngineSample(
            engine=engine,
            address=address[: wire.TEXT_CHARS_MAX],
            model=_models(listed, engine),
            kv_used_ratio=_within(figures.get("kv_used_ratio"), wire.RATIO_MAX),
            requests_running=_count(figures.get("requests_running")),
            requests_waiting=_count(figures.get("requests_waiting")),
            preemptions_total=_count(figures.get("preemptions_total")),
        )
        for engine, figures in found
        if figures
    )


def _figures(metrics: list[Metric], names: _Names) -> dict[Field, float]:
    figures: dict[Field, float] = {}
    for field, alternatives in names.fields.items():
        by_name = ([metric for metric in metrics if metric.name == name] for name in alternatives)
        of_field = next((lines for lines in by_name if lines), None)
        if of_field is not None:
            figures[field] = _over_replicas(of_field, names.replica, max if field == "kv_used_ratio" else sum)
    return figures


def _over_replicas(metrics: list[Metric], replica: str, together: Callable[[Iterable[float]], float]) -> float:
    highest: dict[tuple[str | None, str | None], float] = {}
    for metric in metrics:
        key = metric.labels.get("model_name"), metric.labels.get(replica)
        highest[key] = max(metric.value, highest.get(key, metric.value))
    return together(highest.values())


def _models(metrics: list[Metric], engine: Engine) -> str | None:
    names = {metric.labels.get("model_name", "") for metric in metrics if metric.name.startswith(f"{engine}:")} - {""}
    return ", ".join(sorted(names))[: wire.TEXT_CHARS_MAX] or None


def _within(value: float | None, most: float) -> float | None:
    return value if value is not None and 0 <= value <= most else None


def _count(value: float | None) -> int | None:
    fits = _within(value, wire.COUNT_MAX)
    return None if fits is None else round(fits)
