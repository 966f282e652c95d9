"""Rollout engines, by their own metrics, while they are heard."""

from collections.abc import Iterator

from oomwatch.metrics.family import Family, Reading, Room, View
from oomwatch.service.views import ENGINES_SHOWN_SECONDS

_LABELS, _PER = ("node", "engine", "address", "run"), ("engine",)
KV_CACHE = Family("oomwatch_kv_cache_used_ratio", "gauge",
                  "Share of the rollout engine's KV cache in use.", _LABELS, _PER)  # fmt: skip
RUNNING = Family("oomwatch_engine_requests_running", "gauge", "Requests that the engine works on.", _LABELS, _PER)
WAITING = Family("oomwatch_engine_requests_waiting", "gauge",
                 "Requests that wait for room in the engine.", _LABELS, _PER)  # fmt: skip
PREEMPTIONS = Family("oomwatch_engine_preemptions", "counter",
                     "Requests that the engine put back for want of room (SGLang: retractions).",
                     _LABELS, _PER)  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    heard = [
        ((node.name, engine.engine, engine.address, engine.run or ""), engine)
        for node in view.nodes
        if view.now - node.engines_at <= ENGINES_SHOWN_SECONDS
        for engine in node.engines
    ]
    yield KV_CACHE.of((key, engine.kv_used_ratio) for key, engine in heard)
    yield RUNNING.of((key, engine.requests_running) for key, engine in heard)
    yield WAITING.of((key, engine.requests_waiting) for key, engine in heard)
    yield PREEMPTIONS.of((key, engine.preemptions_total) for key, engine in heard)


ROOM = Room((KV_CACHE, RUNNING, WAITING, PREEMPTIONS), _read)
