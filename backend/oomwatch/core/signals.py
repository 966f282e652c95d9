"""The numbers that a rule can watch, by the names that alerts.yaml uses.

A signal says of which kind of subject it is, in which unit, how it is computed from the fleet, and when it is unknown.
To add one: write its function and its line in SIGNALS.
"""

from collections.abc import Callable
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.fleet import Fleet, GpuRecord, NodeRecord, RunRecord, Scope, Subject
from oomwatch.core.steps import StepRecord
from oomwatch.core.window import Window

# A reading counts for three intervals, and for five seconds at least: one lost sample is no loss of sight.
STALE_INTERVALS = 3
STALE_SECONDS_MIN = 5.0


class Observed(NamedTuple):
    """A signal's value now, and the numbers it was made of."""

    value: float
    facts: dict[str, wire.Fact]


class Signal(NamedTuple):
    scopes: tuple[Scope, ...]
    unit: str
    about: str
    read: Callable[[Fleet, Subject, float], Observed | None]
    facts: tuple[str, ...] = ()
    window: Callable[[Fleet, Subject], Window | None] | None = None  # for conditions that look back over time
    step_value: Callable[[wire.Step], float | None] | None = None  # for conditions that look back over steps
    moves_with_time: bool = False  # becomes true without data: it has to be judged on the grid


def stale_after_seconds(node: NodeRecord) -> float:
    return max(STALE_SECONDS_MIN, STALE_INTERVALS * node.interval_seconds)


def _fresh_gpu(fleet: Fleet, subject: Subject, now: float) -> tuple[GpuRecord, wire.GpuSample] | None:
    node = fleet.nodes.get(subject.name)
    gpu = node.gpus.get(subject.gpu) if node else None
    if node is None or gpu is None or gpu.sample is None or now - gpu.at > stale_after_seconds(node):
        return None
    return gpu, gpu.sample


def _gpu_used_ratio(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    found = _fresh_gpu(fleet, subject, now)
    if found is None or found[1].used_bytes is None or found[0].usable_bytes <= 0:
        return None
    used_bytes, usable_bytes = found[1].used_bytes, found[0].usable_bytes
    return Observed(used_bytes / usable_bytes, {"used_bytes": used_bytes, "usable_bytes": usable_bytes})


def _gpu_used_bytes(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    found = _fresh_gpu(fleet, subject, now)
    if found is None or found[1].used_bytes is None:
        return None
    return Observed(found[1].used_bytes, {"usable_bytes": found[0].usable_bytes})


def _gpu_temperature(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    found = _fresh_gpu(fleet, subject, now)
    celsius = found[1].temperature_celsius if found else None
    return None if celsius is None else Observed(celsius, {})


def _gpu_lost(fleet: Fleet, subject: Subject, _now: float) -> Observed | None:
    gpu = fleet.gpu(subject)
    if gpu is None or gpu.status == "no_data":
        return None
    return Observed(float(gpu.status == "lost"), {"gpu_name": gpu.facts.name})


def _torch_window(fleet: Fleet, subject: Subject) -> Window | None:
    record = fleet.gpu(subject) if subject.scope == "gpu" else fleet.runs.get(subject.name)
    return record.torch_reserved if record else None


def _torch_reserved_ratio(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    window = _torch_window(fleet, subject)
    latest = window.latest() if window else None
    return None if latest is None or latest.at > now + STALE_SECONDS_MIN else Observed(latest.value, {})


def _fresh_host(fleet: Fleet, subject: Subject, now: float) -> tuple[NodeRecord, wire.HostSample] | None:
    node = fleet.nodes.get(subject.name)
    if node is None or node.host is None or now - node.host_at > stale_after_seconds(node):
        return None
    return node, node.host


def _host_memory_ratio(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    """The tighter of the machine's memory and the container's limit: whichever fills first is what kills."""
    found = _fresh_host(fleet, subject, now)
    facts = found[0].hello.facts.host if found else None
    if found is None or facts is None:
        return None
    node, host = found
    readings: list[tuple[float, int, int, str]] = []
    if host.memory_used_bytes is not None and facts.memory_total_bytes:
        used = host.memory_used_bytes
        readings.append((used / facts.memory_total_bytes, used, facts.memory_total_bytes, "machine"))
    if host.cgroup_used_bytes is not None and facts.memory_limit_bytes:
        used = host.cgroup_used_bytes
        readings.append((used / facts.memory_limit_bytes, used, facts.memory_limit_bytes, "container"))
    if not readings:
        return None
    ratio, used_bytes, limit_bytes, limited_by = max(readings)
    detail: dict[str, wire.Fact] = {"used_bytes": used_bytes, "limit_bytes": limit_bytes, "limited_by": limited_by}
    return Observed(ratio, detail | _biggest_process(node))


def _biggest_process(node: NodeRecord) -> dict[str, wire.Fact]:
    if not node.host_processes:
        return {}
    biggest = max(node.host_processes, key=lambda process: process.rss_bytes)
    return {"process": biggest.name, "pid": biggest.pid, "process_bytes": biggest.rss_bytes}


def _host_shm_ratio(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    found = _fresh_host(fleet, subject, now)
    facts = found[0].hello.facts.host if found else None
    if found is None or facts is None or not facts.shm_total_bytes or found[1].shm_used_bytes is None:
        return None
    used_bytes = found[1].shm_used_bytes
    return Observed(
        used_bytes / facts.shm_total_bytes, {"used_bytes": used_bytes, "limit_bytes": facts.shm_total_bytes}
    )


def _agent_silent_seconds(fleet: Fleet, subject: Subject, now: float) -> Observed | None:
    node = fleet.nodes.get(subject.name)
    if node is None:
        return None
    silent_seconds = 0.0 if node.stopped else max(0.0, now - node.heard_at)
    return Observed(silent_seconds, {"gpus": len(node.gpus)})


def last_step(run: RunRecord | None, value_of: Callable[[wire.Step], float | None]) -> StepRecord | None:
    """The last training step since the last restart that has this value."""
    steps = run.steps.segment() if run else []
    return next((record for record in reversed(steps) if value_of(record.step) is not None), None)


def _of_steps(value_of: Callable[[wire.Step], float | None]) -> Callable[[Fleet, Subject, float], Observed | None]:
    def read(fleet: Fleet, subject: Subject, _now: float) -> Observed | None:
        record = last_step(fleet.runs.get(subject.name), value_of)
        value = value_of(record.step) if record else None
        return None if record is None or value is None else Observed(value, {"step": record.step.step})

    return read


def _rollout_seconds(step: wire.Step) -> float | None:
    return step.rollout_seconds


def _step_seconds(step: wire.Step) -> float | None:
    return step.step_seconds


def _reshard_step_ratio(step: wire.Step) -> float | None:
    if step.reshard_seconds is None or not step.step_seconds:
        return None
    return step.reshard_seconds / step.step_seconds


def _step_signal(unit: str, about: str, value_of: Callable[[wire.Step], float | None]) -> Signal:
    return Signal(("run",), unit, about, _of_steps(value_of), ("step",), step_value=value_of)


SIGNALS: dict[str, Signal] = {
    "gpu_used_ratio": Signal(
        ("gpu",),
        "ratio",
        "device memory in use, as a share of what the driver leaves usable",
        _gpu_used_ratio,
        ("used_bytes", "usable_bytes"),
    ),
    "gpu_used_bytes": Signal(("gpu",), "bytes", "device memory in use", _gpu_used_bytes, ("usable_bytes",)),
    "gpu_temperature_celsius": Signal(("gpu",), "celsius", "temperature of the GPU", _gpu_temperature),
    "gpu_lost": Signal(("gpu",), "count", "1 while the driver has given the GPU up", _gpu_lost, ("gpu_name",)),
    "torch_reserved_ratio": Signal(
        ("gpu", "run"),
        "ratio",
        "memory that torch's allocator has reserved, as a share of the card; device memory where that is less",
        _torch_reserved_ratio,
        window=_torch_window,
    ),
    "host_memory_ratio": Signal(
        ("node",),
        "ratio",
        "host memory in use, as a share of the machine's or the container's limit, whichever is tighter",
        _host_memory_ratio,
        ("used_bytes", "limit_bytes", "limited_by", "process", "pid", "process_bytes"),
    ),
    "host_shm_ratio": Signal(("node",), "ratio", "use of /dev/shm", _host_shm_ratio, ("used_bytes", "limit_bytes")),
    "agent_silent_seconds": Signal(
        ("node",),
        "seconds",
        "time since the node's agent was last heard; 0 once it said goodbye",
        _agent_silent_seconds,
        ("gpus",),
        moves_with_time=True,
    ),
    "rollout_seconds": _step_signal("seconds", "rollout time of the last step", _rollout_seconds),
    "step_seconds": _step_signal("seconds", "duration of the last step", _step_seconds),
    "reshard_step_ratio": _step_signal(
        "ratio", "share of the last step that the switch from training to rollout took", _reshard_step_ratio
    ),
}


def signal(name: str) -> Signal:
    """A signal by name. Raises ValueError that lists the known ones."""
    try:
        return SIGNALS[name]
    except KeyError:
        raise ValueError(f'unknown metric "{name}"; known are {", ".join(SIGNALS)}') from None
