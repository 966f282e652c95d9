"""Signals of a GPU: what the driver reads, and what torch has reserved (of a run too, where no GPU is known)."""

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.noderecord import STALE_SECONDS_MIN
from oomwatch.core.peaks import usual_of
from oomwatch.core.signals.signal import Peaks, Signal
from oomwatch.core.subject import Subject
from oomwatch.core.window import Window


def _fresh_gpu(fleet: Fleet, subject: Subject, now: float) -> tuple[GpuRecord, wire.GpuSample] | None:
    node = fleet.nodes.get(subject.name)
    gpu = node.gpus.get(subject.gpu) if node else None
    if node is None or gpu is None or gpu.sample is None or now - gpu.at > node.stale_after_seconds:
        return None
    return gpu, gpu.sample


def _is_fresh(fleet: Fleet, subject: Subject, now: float) -> bool:
    return _fresh_gpu(fleet, subject, now) is not None


def _gpu_used_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_gpu(fleet, subject, now)
    if found is None:
        return None
    used_bytes, usable_bytes = found[0].highest_bytes, found[0].usable_bytes
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
    return found[0].highest_bytes if found else None


def _usable(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    gpu = fleet.gpu(subject)
    return {"usable_bytes": gpu.usable_bytes} if gpu else {}


def _used_and_usable(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    gpu = fleet.gpu(subject)
    if gpu is None or gpu.highest_bytes is None:
        return {}
    return {"used_bytes": gpu.highest_bytes, "usable_bytes": gpu.usable_bytes}


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
        is_fresh=_is_fresh,
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
        is_fresh=_is_fresh,
    ),
    "gpu_temperature_celsius": Signal(
        ("gpu",), "celsius", "temperature of the GPU", _gpu_temperature, ("readings",), is_fresh=_is_fresh
    ),
    "gpu_lost": Signal(
        ("gpu",),
        "count",
        "1 while the driver has given the GPU up",
        _gpu_lost,
        ("status",),
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
}
