"""What is known of a subject at the moment it is judged: `gather` walks the fleet when an alert fires."""

from collections.abc import Iterable
from statistics import median

from oomwatch.core.devicefacts import device_facts, peers_peak
from oomwatch.core.facts import Facts, OomFacts, number
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.hostmemory import tightest
from oomwatch.core.needs import with_needs
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.settings import settings_of
from oomwatch.core.shortseries import TREND_MIN, known
from oomwatch.core.stepseries import WHOLE_STEP
from oomwatch.core.subject import Subject, Topic
from oomwatch.core.verdict import Verdict

ENGINES_FRESH_SECONDS = 60.0


def gather(fleet: Fleet, subject: Subject, topic: Topic, watched: str, verdict: Verdict, now: float) -> Facts:
    """Everything that is known of what a rule has just judged `active`."""
    run = fleet.run_record(subject)
    node = fleet.nodes.get(subject.name) if subject.scope != "run" else None
    gpu = _gpu_of(fleet, subject, run, node)
    node = node or (fleet.nodes.get(gpu.subject.name) if gpu else None)
    oom = _oom(verdict, run)
    phase = verdict.facts.get("phase")
    found: dict[str, object] = {"phase": str(phase)} if phase and phase != WHOLE_STEP else {}
    if gpu is not None:
        found |= device_facts(fleet, gpu, run, verdict) | {"peers_peak_bytes": peers_peak(fleet, gpu, run)}
    if node is not None:
        found |= _host(node) | _engines(node, now)
    if run is not None:
        found |= _rhythm(run)
    settings = settings_of(run.config if run else {})
    facts = Facts(topic=topic, watched=watched, verdict=verdict.facts, oom=oom, settings=settings, **found)  # type: ignore[arg-type]
    return with_needs(facts, verdict)


def _gpu_of(fleet: Fleet, subject: Subject, run: RunRecord | None, node: NodeRecord | None) -> GpuRecord | None:
    """The GPU that is judged; of a node or a run, the fullest, which stands for all."""
    if subject.scope == "gpu":
        return fleet.gpu(subject)
    gpus: Iterable[GpuRecord] = node.gpus.values() if node else fleet.gpus_of_run(run) if run else ()
    return max(gpus, key=lambda gpu: _highest(gpu) / gpu.usable_bytes if gpu.usable_bytes else 0.0, default=None)


def _highest(gpu: GpuRecord) -> float:
    last = gpu.steps[-1].peak_bytes if gpu.steps else None
    return last if last is not None else float(gpu.used_bytes or 0)


def _oom(verdict: Verdict, run: RunRecord | None) -> OomFacts | None:
    facts = verdict.facts
    event = facts.get("event")
    if event not in ("device_oom", "host_oom"):
        return None
    phase = facts.get("phase") or (run.timeline.current() if run else None)
    return OomFacts(
        on="device" if event == "device_oom" else "host",
        phase=str(phase) if phase else None,
        tried_bytes=number(facts.get("tried_bytes")),
        free_bytes=number(facts.get("free_bytes")),
        slack_bytes=number(facts.get("reserved_unallocated_bytes")),
        error=str(facts.get("error", "")),
        process=str(facts.get("process", "")),
    )


def _host(node: NodeRecord) -> dict[str, object]:
    facts, host = node.hello.facts.host, node.host
    if facts is None or host is None:
        return {}
    use = tightest(host, facts)
    return {
        "host_used_bytes": use.used_bytes if use else None,
        "host_limit_bytes": use.limit_bytes if use else None,
        "limited_by": use.limited_by if use else "machine",
        "host_parts": tuple(node.parts),
        "shm_used_bytes": host.shm_used_bytes,
        "shm_total_bytes": facts.shm_total_bytes,
        "disk_used_bytes": host.disk_used_bytes,
        "disk_total_bytes": facts.disk_total_bytes,
    }


def _engines(node: NodeRecord, now: float) -> dict[str, object]:
    if now - node.engines_at > ENGINES_FRESH_SECONDS:
        return {}
    used = known(one.kv_used_ratio for one in node.engines)
    waiting = [one.requests_waiting for one in node.engines if one.requests_waiting is not None]
    return {"kv_used_ratio": max(used, default=None), "requests_waiting": sum(waiting) if waiting else None}


def _rhythm(run: RunRecord) -> dict[str, object]:
    seconds: dict[str, object] = {"step_seconds": run.steps.rhythm_seconds()}
    took = [
        record.step.phase_seconds["reward"] for record in run.steps.segment() if "reward" in record.step.phase_seconds
    ]
    if len(took) < TREND_MIN:
        return seconds
    return seconds | {"reward_seconds": took[-1], "reward_before_seconds": median(took[:-1])}
