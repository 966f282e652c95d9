"""The numbers that a rule can watch, by the names that alerts.yaml uses.

A signal says of which kind of subject it is, in which unit, how it is computed from the fleet, and when it is unknown.
To add one: write its function and its line in SIGNALS.
"""

from collections.abc import Callable
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.hostmemory import tightest
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.peaks import usual_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.window import Window

# A reading counts for three intervals, and for five seconds at least: one lost sample is no loss of sight.
STALE_INTERVALS = 3
STALE_SECONDS_MIN = 5.0
SHM_PATH = "/dev/shm"  # noqa: S108 - a name for people, not a path to write to


class Peaks(NamedTuple):
    """The peaks of a signal, oldest first: of training steps, or of blocks of five minutes where no steps are told."""

    values: list[float]
    of_steps: bool


class Signal(NamedTuple):
    """`read` gives the value at a time, or None; `explain` the facts named in `facts`, where the value is known."""

    scopes: tuple[Scope, ...]
    unit: str
    about: str
    read: Callable[[Fleet, Subject, float], float | None]
    hears: tuple[News, ...]  # what can change it
    facts: tuple[str, ...] = ()
    explain: Callable[[Fleet, Subject], dict[str, wire.Fact]] = lambda _fleet, _subject: {}
    window: Callable[[Fleet, Subject], Window | None] | None = None  # for conditions that look back over time
    ceiling: Callable[[Fleet, Subject, float], float | None] | None = None  # what the signal cannot exceed, if known
    step_value: Callable[[wire.Step], float | None] | None = None  # for conditions that look back over steps
    peaks: Callable[[Fleet, Subject], Peaks] | None = None  # for conditions that ask whether it still gets worse
    predicts: Channel | None = None  # what a high value says will run full
    topic: Topic | None = None  # what an alert of it is about; None where it has no cause in a memory

    def check_bound(self, name: str, bound: float) -> None:
        """Raises ValueError for a bound that the signal can never cross: 85 for a share, a negative size."""
        if self.unit == "ratio" and not 0 <= bound <= 1:
            raise ValueError(f"{name}: {bound:g} is no share; write 85% or 0.85")
        if self.unit not in ("ratio", "celsius") and bound < 0:
            raise ValueError(f"{name}: {bound:g} is below zero, where this metric never is")


def stale_after_seconds(node: NodeRecord) -> float:
    return max(STALE_SECONDS_MIN, STALE_INTERVALS * node.interval_seconds)


def _fresh_gpu(fleet: Fleet, subject: Subject, now: float) -> tuple[GpuRecord, wire.GpuSample] | None:
    node = fleet.nodes.get(subject.name)
    gpu = node.gpus.get(subject.gpu) if node else None
    if node is None or gpu is None or gpu.sample is None or now - gpu.at > stale_after_seconds(node):
        return None
    return gpu, gpu.sample


def _gpu_used_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_gpu(fleet, subject, now)
    if found is None:
        return None
    used_bytes, usable_bytes = found[1].used_bytes, found[0].usable_bytes
    return None if used_bytes is None or usable_bytes <= 0 else used_bytes / usable_bytes


def _gpu_peaks(fleet: Fleet, subject: Subject) -> Peaks:
    gpu = fleet.gpu(subject)
    if gpu is None or gpu.usable_bytes <= 0:
        return Peaks([], of_steps=False)
    stamp = (gpu.steps[-1].at if gpu.steps else None, gpu.blocks.open.at if gpu.blocks.open else None)
    return gpu.memo.once("peaks", stamp, lambda: _peaks_of(gpu))


def _peaks_of(gpu: GpuRecord) -> Peaks:
    of_steps = [one.peak_bytes for one in usual_of(gpu.steps) if one.peak_bytes is not None]
    peaks = of_steps or [block.peak_bytes for block in gpu.blocks.closed()]
    return Peaks([peak / gpu.usable_bytes for peak in peaks], of_steps=bool(of_steps))


def _gpu_used_bytes(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_gpu(fleet, subject, now)
    return found[1].used_bytes if found else None


def _usable(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    gpu = fleet.gpu(subject)
    return {"usable_bytes": gpu.usable_bytes} if gpu else {}


def _used_and_usable(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    gpu = fleet.gpu(subject)
    if gpu is None or gpu.sample is None or gpu.sample.used_bytes is None:
        return {}
    return {"used_bytes": gpu.sample.used_bytes, "usable_bytes": gpu.usable_bytes}


def _gpu_temperature(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_gpu(fleet, subject, now)
    return found[1].temperature_celsius if found else None


def _gpu_lost(fleet: Fleet, subject: Subject, _now: float) -> float | None:
    gpu = fleet.gpu(subject)
    if gpu is None or gpu.status == "no_data":
        return None
    return float(gpu.status == "lost")


def _gpu_name(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    gpu = fleet.gpu(subject)
    return {"gpu_name": gpu.facts.name} if gpu else {}


def _torch_window(fleet: Fleet, subject: Subject) -> Window | None:
    record = fleet.gpu(subject) if subject.scope == "gpu" else fleet.runs.get(subject.name)
    return record.torch_reserved if record else None


def _torch_reserved_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    window = _torch_window(fleet, subject)
    latest = window.latest() if window else None
    return None if latest is None or latest.at > now + STALE_SECONDS_MIN else latest.value


def _device_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    """Use of the fullest of the subject's GPUs; None where one of them does not tell."""
    run = fleet.runs.get(subject.name) if subject.scope == "run" else None
    cards = [gpu.subject for gpu in fleet.gpus_of_run(run)] if run else [subject]
    ratios = [_gpu_used_ratio(fleet, card, now) for card in cards]
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known) if known and len(known) == len(ratios) else None


def _fresh_host(fleet: Fleet, subject: Subject, now: float) -> tuple[wire.HostSample, wire.HostFacts] | None:
    node = fleet.nodes.get(subject.name)
    if node is None or node.host is None or now - node.host_at > stale_after_seconds(node):
        return None
    facts = node.hello.facts.host
    return None if facts is None else (node.host, facts)


def _host_memory_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_host(fleet, subject, now)
    use = tightest(*found) if found else None
    return use.ratio if use else None


def _host_memory_facts(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    node = fleet.nodes.get(subject.name)
    facts = node.hello.facts.host if node else None
    use = tightest(node.host, facts) if node and node.host and facts else None
    if node is None or use is None:
        return {}
    detail: dict[str, wire.Fact] = {
        "used_bytes": use.used_bytes,
        "limit_bytes": use.limit_bytes,
        "limited_by": use.limited_by,
    }
    return detail | _biggest_process(node)


def _biggest_process(node: NodeRecord) -> dict[str, wire.Fact]:
    if not node.host_processes:
        return {}
    biggest = max(node.host_processes, key=lambda process: process.rss_bytes)
    return {"process": biggest.name, "pid": biggest.pid, "process_bytes": biggest.rss_bytes}


def _host_shm_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_host(fleet, subject, now)
    if found is None:
        return None
    used_bytes, total_bytes = found[0].shm_used_bytes, found[1].shm_total_bytes
    return None if used_bytes is None or not total_bytes else used_bytes / total_bytes


def _host_shm_facts(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    node = fleet.nodes.get(subject.name)
    facts = node.hello.facts.host if node else None
    used_bytes = node.host.shm_used_bytes if node and node.host else None
    if facts is None or facts.shm_total_bytes is None or used_bytes is None:
        return {}
    return {"path": SHM_PATH, "used_bytes": used_bytes, "limit_bytes": facts.shm_total_bytes}


def _host_disk_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_host(fleet, subject, now)
    if found is None:
        return None
    used_bytes, total_bytes = found[0].disk_used_bytes, found[1].disk_total_bytes
    return None if used_bytes is None or not total_bytes else used_bytes / total_bytes


def _host_disk_facts(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    node = fleet.nodes.get(subject.name)
    facts = node.hello.facts.host if node else None
    used_bytes = node.host.disk_used_bytes if node and node.host else None
    if facts is None or facts.disk_total_bytes is None or facts.disk_path is None or used_bytes is None:
        return {}
    return {"path": facts.disk_path, "used_bytes": used_bytes, "limit_bytes": facts.disk_total_bytes}


def _agent_silent_seconds(fleet: Fleet, subject: Subject, now: float) -> float | None:
    node = fleet.nodes.get(subject.name)
    if node is None:
        return None
    return 0.0 if node.stopped else max(0.0, now - node.heard_at)


def _gpu_count(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    node = fleet.nodes.get(subject.name)
    return {"gpus": len(node.gpus)} if node else {}


def last_step(run: RunRecord | None, value_of: Callable[[wire.Step], float | None]) -> StepRecord | None:
    """The last training step since the last restart that has this value."""
    steps = run.steps.segment() if run else []
    return next((record for record in reversed(steps) if value_of(record.step) is not None), None)


def _rollout_seconds(step: wire.Step) -> float | None:
    return step.rollout_seconds


def _step_seconds(step: wire.Step) -> float | None:
    return step.step_seconds


def _reshard_step_ratio(step: wire.Step) -> float | None:
    if step.reshard_seconds is None or not step.step_seconds:
        return None
    return step.reshard_seconds / step.step_seconds


def _step_signal(unit: str, about: str, value_of: Callable[[wire.Step], float | None], topic: Topic) -> Signal:
    def read(fleet: Fleet, subject: Subject, _now: float) -> float | None:
        """Of the last step, unless it is one of those that warm up: their times say nothing."""
        record = last_step(fleet.runs.get(subject.name), value_of)
        return value_of(record.step) if record and record.usual else None

    def explain(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
        record = last_step(fleet.runs.get(subject.name), value_of)
        return {"step": record.step.step} if record else {}

    return Signal(("run",), unit, about, read, ("events",), ("step",), explain, step_value=value_of, topic=topic)


SIGNALS: dict[str, Signal] = {
    "gpu_used_ratio": Signal(
        ("gpu",),
        "ratio",
        "device memory in use, as a share of what the driver leaves usable",
        _gpu_used_ratio,
        ("readings",),
        ("used_bytes", "usable_bytes"),
        _used_and_usable,
        peaks=_gpu_peaks,
        predicts="device",
        topic="device",
    ),
    "gpu_used_bytes": Signal(
        ("gpu",),
        "bytes",
        "device memory in use",
        _gpu_used_bytes,
        ("readings",),
        ("usable_bytes",),
        _usable,
        predicts="device",
        topic="device",
    ),
    "gpu_temperature_celsius": Signal(("gpu",), "celsius", "temperature of the GPU", _gpu_temperature, ("readings",)),
    "gpu_lost": Signal(
        ("gpu",),
        "count",
        "1 while the driver has given the GPU up",
        _gpu_lost,
        ("readings",),
        ("gpu_name",),
        _gpu_name,
    ),
    "torch_reserved_ratio": Signal(
        ("gpu", "run"),
        "ratio",
        "memory that torch's allocator has reserved, as a share of the card; device memory where that is less",
        _torch_reserved_ratio,
        ("torch", "events"),
        window=_torch_window,
        ceiling=_device_ratio,
        predicts="device",
        topic="device",
    ),
    "host_memory_ratio": Signal(
        ("node",),
        "ratio",
        "host memory in use, as a share of the machine's or the container's limit, whichever is tighter",
        _host_memory_ratio,
        ("readings",),
        ("used_bytes", "limit_bytes", "limited_by", "process", "pid", "process_bytes"),
        _host_memory_facts,
        predicts="host",
        topic="host",
    ),
    "host_shm_ratio": Signal(
        ("node",),
        "ratio",
        "use of /dev/shm",
        _host_shm_ratio,
        ("readings",),
        ("path", "used_bytes", "limit_bytes"),
        _host_shm_facts,
        predicts="host",
        topic="disk",
    ),
    "host_disk_ratio": Signal(
        ("node",),
        "ratio",
        "use of the file system that Ray spills to",
        _host_disk_ratio,
        ("readings",),
        ("path", "used_bytes", "limit_bytes"),
        _host_disk_facts,
        predicts="disk",
        topic="disk",
    ),
    "agent_silent_seconds": Signal(
        ("node",),
        "seconds",
        "time since the node's agent was last heard; 0 once it said goodbye",
        _agent_silent_seconds,
        ("time",),
        ("gpus",),
        _gpu_count,
    ),
    "rollout_seconds": _step_signal("seconds", "rollout time of the last step", _rollout_seconds, "speed"),
    "step_seconds": _step_signal("seconds", "duration of the last step", _step_seconds, "speed"),
    "reshard_step_ratio": _step_signal(
        "ratio", "share of the last step that the switch from training to rollout took", _reshard_step_ratio, "switch"
    ),
}


def signal(name: str) -> Signal:
    """A signal by name. Raises ValueError that lists the known ones."""
    try:
        return SIGNALS[name]
    except KeyError:
        raise ValueError(f'unknown metric "{name}"; known are {", ".join(SIGNALS)}') from None
