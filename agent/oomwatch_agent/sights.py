"""PURE: between a sample as it is sent and the memories that are looked at: what it tells of them, and their peaks."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from oomwatch import wire
from oomwatch_agent.nearing import Peak
from oomwatch_agent.source import CONTAINER, MACHINE, Sight


def of_sample(gpus: Iterable[wire.GpuSample], host: wire.HostSample | None, facts: wire.NodeFacts) -> list[Sight]:
    """What a sample tells of every memory whose size is known."""
    usable = {gpu.gpu: gpu.total_bytes - gpu.reserved_bytes for gpu in facts.gpus}
    found = [
        Sight(gpu.gpu, gpu.used_bytes, usable[gpu.gpu])
        for gpu in gpus
        if gpu.used_bytes is not None and gpu.gpu in usable
    ]
    return found + of_host(host, facts.host)


def of_host(host: wire.HostSample | None, facts: wire.HostFacts | None) -> list[Sight]:
    """The machine's memory, and the container's where it has a limit."""
    if host is None or facts is None:
        return []
    told = (
        (MACHINE, host.memory_used_bytes, facts.memory_total_bytes),
        (CONTAINER, host.cgroup_used_bytes, facts.memory_limit_bytes),
    )
    return [Sight(memory, used, usable) for memory, used, usable in told if used is not None and usable is not None]


def gpus_with_peaks(
    gpus: Sequence[wire.GpuSample], peaks: Mapping[str, Peak], now: float
) -> tuple[wire.GpuSample, ...]:
    """The same samples, with the peaks of their cards. `now` is by the clock of the peaks."""
    if not peaks:  # of most samples
        return tuple(gpus)
    return tuple(_with_peak(gpu, peaks[gpu.gpu], now) if gpu.gpu in peaks else gpu for gpu in gpus)


def _with_peak(gpu: wire.GpuSample, peak: Peak, now: float) -> wire.GpuSample:
    return msgspec.structs.replace(gpu, used_peak_bytes=peak.used_bytes, used_peak_seconds_ago=_ago(peak, now))


def host_with_peaks(host: wire.HostSample | None, peaks: Mapping[str, Peak], now: float) -> wire.HostSample | None:
    """The same sample, with the peaks of the machine and of the container."""
    machine, container = peaks.get(MACHINE), peaks.get(CONTAINER)
    if host is None or (machine is None and container is None):
        return host
    return msgspec.structs.replace(
        host,
        memory_used_peak_bytes=machine.used_bytes if machine else None,
        memory_used_peak_seconds_ago=_ago(machine, now) if machine else None,
        cgroup_used_peak_bytes=container.used_bytes if container else None,
        cgroup_used_peak_seconds_ago=_ago(container, now) if container else None,
    )


def _ago(peak: Peak, now: float) -> float:
    return round(max(0.0, now - peak.at), 3)
