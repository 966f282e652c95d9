"""PURE: what agents saw between two samples, as readings of their own at their own time, so that no peak is lost.

Such a reading has the one figure that was looked at, and nothing else.
"""

from collections.abc import Iterator
from typing import NamedTuple

from oomwatch import wire


class Seen(NamedTuple):
    """A reading between two samples; `gpu` is None of the host."""

    gpu: str | None
    at: float
    reading: wire.GpuSample | wire.HostSample


def seen_before(sample: wire.Sample) -> Iterator[Seen]:
    """The peaks that a sample tells of, at most one of each memory."""
    for gpu in sample.gpus:
        if gpu.used_peak_bytes is not None:
            at = sample.at - (gpu.used_peak_seconds_ago or 0.0)
            yield Seen(gpu.gpu, at, wire.GpuSample(gpu=gpu.gpu, used_bytes=gpu.used_peak_bytes))
    host = sample.host
    if host is not None and host.memory_used_peak_bytes is not None:
        at = sample.at - (host.memory_used_peak_seconds_ago or 0.0)
        yield Seen(None, at, wire.HostSample(memory_used_bytes=host.memory_used_peak_bytes))
    if host is not None and host.cgroup_used_peak_bytes is not None:
        at = sample.at - (host.cgroup_used_peak_seconds_ago or 0.0)
        yield Seen(None, at, wire.HostSample(cgroup_used_bytes=host.cgroup_used_peak_bytes))
