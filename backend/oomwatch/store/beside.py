"""PURE: what is told of a subject beside its own reading, as one row of the history.

Of a GPU: torch's allocator in all processes together, and whose memory it is. Of a host: its rollout engines together,
Ray's disk, and what the largest processes of each kind hold. Processes are listed every ten seconds: between two of
them these columns are missing. What no table told is None, and what a table had no process of is 0.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core import allocator
from oomwatch.core.parts import KINDS_ON_HOST, kind_of_name, kinds_on_gpu


class BesideGpu(NamedTuple):
    """Sums in bytes. The first three are those of all processes in which a probe is."""

    reserved_bytes: int | None = None
    allocated_bytes: int | None = None
    alloc_retries_total: int | None = None
    trainer_bytes: int | None = None  # device memory of the processes that train
    probed_bytes: int | None = None  # of those, the ones in which a probe tells of torch
    engine_bytes: int | None = None
    other_bytes: int | None = None
    engine_reserved_bytes: int | None = None  # of the torch figures, what is of engines' processes
    engine_allocated_bytes: int | None = None


class BesideHost(NamedTuple):
    """The fullest KV cache, sums of counts, what is used of the disk, and resident bytes of each kind of process."""

    kv_used_ratio: float | None = None
    requests_waiting: int | None = None
    preemptions_total: int | None = None
    disk_used_bytes: int | None = None
    driver_bytes: int | None = None
    engine_bytes: int | None = None
    worker_bytes: int | None = None
    object_store_bytes: int | None = None
    other_bytes: int | None = None


NOTHING_OF_GPU = BesideGpu()
NOTHING_OF_HOST = BesideHost()


def beside_gpus(sample: wire.Sample) -> dict[str, BesideGpu]:
    """A row for each GPU of which probes or a process table told something."""
    found: dict[str, BesideGpu] = {}
    probes: dict[str, list[wire.TorchSample]] = {}
    for probe in sample.torch:
        if probe.gpu is not None:
            probes.setdefault(probe.gpu, []).append(probe)
    for label, of_gpu in probes.items():
        found[label] = _torch(of_gpu)
    for gpu in sample.gpus:
        if gpu.processes is not None:
            found[gpu.gpu] = _held(found.get(gpu.gpu, NOTHING_OF_GPU), gpu.processes, probes.get(gpu.gpu, ()))
    return found


def _torch(probes: Sequence[wire.TorchSample]) -> BesideGpu:
    (sums,) = allocator.by_gpu(probes).values()
    engines = [one for one in probes if one.role == "rollout"]
    return BesideGpu(
        reserved_bytes=sums.reserved_bytes,
        allocated_bytes=sums.allocated_bytes,
        alloc_retries_total=sums.alloc_retries_total,
        engine_reserved_bytes=_sum(one.reserved_bytes for one in engines),
        engine_allocated_bytes=_sum(one.allocated_bytes for one in engines),
    )


def _held(row: BesideGpu, processes: Sequence[wire.GpuProcess], probes: Sequence[wire.TorchSample]) -> BesideGpu:
    """The page splits a GPU alike (memory-parts.js); both are held against tests/core/memory_parts.json."""
    engines = {one.pid for one in probes if one.role == "rollout"}
    probed = {one.pid for one in probes} - engines
    run = next((one.run for one in processes if one.run), None)
    told = [(one, "engine" if one.pid in engines else kind) for one, kind in kinds_on_gpu(processes, run)]
    trainers = [one for one, kind in told if kind == "trainer"]
    return row._replace(
        trainer_bytes=_all_of(trainers),
        probed_bytes=_all_of(one for one in trainers if one.pid in probed),
        engine_bytes=_all_of(one for one, kind in told if kind == "engine"),
        other_bytes=_all_of(one for one, kind in told if kind not in ("engine", "trainer")),
    )


def _all_of(processes: Iterable[wire.GpuProcess]) -> int | None:
    """0 where there is no such process; None where there are some whose sizes cannot be read (in some containers)."""
    sizes = [one.used_bytes for one in processes]
    return _sum(sizes) if sizes else 0


def beside_host(engines: Iterable[wire.EngineSample], host: wire.HostSample | None) -> BesideHost:
    """What is told of a host at one moment."""
    engines = list(engines)
    if not engines and (host is None or (host.processes is None and host.disk_used_bytes is None)):
        return NOTHING_OF_HOST  # as of nine moments in ten
    row = BesideHost(
        kv_used_ratio=max((one.kv_used_ratio for one in engines if one.kv_used_ratio is not None), default=None),
        requests_waiting=_sum(one.requests_waiting for one in engines),
        preemptions_total=_sum(one.preemptions_total for one in engines),
        disk_used_bytes=host.disk_used_bytes if host is not None else None,
    )
    if host is None or host.processes is None:
        return row
    held = dict.fromkeys(KINDS_ON_HOST, 0)
    for one in host.processes:
        held[kind_of_name(one.name)] += one.rss_bytes
    return row._replace(
        driver_bytes=held["driver"],
        engine_bytes=held["engine"],
        worker_bytes=held["worker"],
        object_store_bytes=held["object_store"],
        other_bytes=held["other"],
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
