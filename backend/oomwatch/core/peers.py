"""Which GPUs of a run do the same work."""

from collections.abc import Iterator

from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.runrecord import RunRecord


def role_of(gpu: GpuRecord) -> str:
    """What its processes do, in one word a role; "" where nobody knows."""
    roles = dict.fromkeys(one.role for one in gpu.processes or () if one.role)
    return " ".join(sorted(role for role in roles if role != "driver"))


def strangers_bytes(gpu: GpuRecord, run: RunRecord) -> int:
    """What programs of others have on the card; 0 where it is not known whose they are."""
    processes = gpu.processes or ()
    known = any(one.run == run.name for one in processes)
    return sum(one.used_bytes or 0 for one in processes if one.run != run.name) if known else 0


def peers_of(gpu: GpuRecord, run: RunRecord, fleet: Fleet) -> Iterator[GpuRecord]:
    """The GPUs of its run with the same role, itself among them."""
    role = role_of(gpu)
    return (one for one in fleet.gpus_of_run(run) if role_of(one) == role)
