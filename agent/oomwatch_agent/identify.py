"""Whose process was that? From a process id to the GPU's label. Pure: what is read of a process is an argument.

A log line says "GPU 0" and means the process' own first GPU: in a Ray cluster every worker says 0. The truth is in the
driver's process tables, which name the processes on each GPU. They are remembered for a while, because the line that
says a process ran out of memory is read after the process is gone.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Found

REMEMBER_SECONDS = 600.0  # a killed process' last lines may come minutes late through Ray's driver log

# What a process was started with, by name; None where it may not be read or the process is gone.
Environment = Callable[[int], Mapping[str, str] | None]

_OF_A_GPU = (
    wire.TorchMemory,
    wire.EngineSleep,
    wire.EngineWake,
    wire.EngineMemory,
    wire.DeviceOom,
    wire.GpuLost,
)
_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-9a-f])?", re.IGNORECASE)


def normal_bus_id(text: str) -> tuple[int, int, int] | None:
    """Domain, bus and device of "0000:3B:00", "00000000:3B:00.0" or "3b:00.0"; None for anything else."""
    match = _BUS_ID.fullmatch(text.strip().removeprefix("PCI:"))
    if match is None:
        return None
    domain, bus, device = match.groups()
    return int(domain or "0", 16), int(bus, 16), int(device, 16)


class _Seen(msgspec.Struct, frozen=True):
    """Where a process was last seen: bytes by GPU label (0 where the driver does not tell)."""

    at: float
    used_bytes: dict[str, int]


class Identifier:
    """Knows which process is on which GPU, and which run a process belongs to. All times are seconds of one clock."""

    def __init__(self, remember_seconds: float = REMEMBER_SECONDS) -> None:
        self._remember_seconds = remember_seconds
        self._gpus: tuple[wire.GpuFacts, ...] = ()
        self._processes: dict[int, _Seen] = {}
        self._runs: dict[int, tuple[float, str]] = {}

    def know_gpus(self, gpus: tuple[wire.GpuFacts, ...]) -> None:
        """The GPUs of this node, in the driver's order."""
        self._gpus = gpus

    def see(self, samples: Iterable[wire.GpuSample], now: float) -> None:
        """Learn from process tables. Samples without one (not read this time) change nothing."""
        seen: dict[int, dict[str, int]] = {}
        for sample in samples:
            for process in sample.processes or ():
                seen.setdefault(process.pid, {})[sample.gpu] = process.used_bytes or 0
        self._processes.update({pid: _Seen(now, used) for pid, used in seen.items()})
        self._forget(now)

    def place(self, found: Found, now: float, environment: Environment) -> Found:
        """The same event with its GPU filled in, where that can be known."""
        pid = found.origin.pid
        if pid is not None and found.run is not None:
            self._runs[pid] = (now, found.run)
        if isinstance(found.body, wire.Probe):
            return msgspec.structs.replace(found, body=self._labelled(found.body, pid))
        gpu = self._gpu_of(found, environment)
        return (
            found if gpu is None else msgspec.structs.replace(found, body=msgspec.structs.replace(found.body, gpu=gpu))
        )

    def place_torch(self, sample: wire.TorchSample) -> wire.TorchSample:
        """The same sample with its GPU's label for what the process calls the device, where that can be known."""
        return msgspec.structs.replace(sample, gpu=self._gpu_of_device(sample.gpu, sample.pid))

    def _labelled(self, probe: wire.Probe, pid: int | None) -> wire.Probe:
        labels = (self._gpu_of_device(device, pid) for device in probe.gpus)
        return msgspec.structs.replace(probe, gpus=tuple(label for label in labels if label is not None))

    def _gpu_of_device(self, device: str | None, pid: int | None) -> str | None:
        """A UUID is certain. An index may be a container's own, so that the driver's process table is better."""
        seen = self._processes.get(pid) if pid is not None else None
        in_table = next(iter(seen.used_bytes)) if seen is not None and len(seen.used_bytes) == 1 else None
        named = self._gpu_named(device) if device is not None else None
        if device is not None and device.isdigit():
            return in_table or named or self._only_gpu()
        return named or in_table or (self._only_gpu() if device is None else None)

    def name_runs(self, sample: wire.GpuSample) -> wire.GpuSample:
        """The same sample with the run of every process that an event has named."""
        processes = sample.processes
        if not processes or not any(process.run is None and process.pid in self._runs for process in processes):
            return sample
        return msgspec.structs.replace(sample, processes=tuple(self._with_run(process) for process in processes))

    def _with_run(self, process: wire.GpuProcess) -> wire.GpuProcess:
        known = self._runs.get(process.pid)
        if process.run is not None or known is None:
            return process
        return msgspec.structs.replace(process, run=known[1])

    def _gpu_of(self, found: Found, environment: Environment) -> str | None:
        body = found.body
        if not isinstance(body, _OF_A_GPU) or body.gpu is not None:
            return None
        if isinstance(body, wire.GpuLost):
            return self._gpu_at(body.pci_bus_id) if body.pci_bus_id else self._only_gpu()
        local_index = body.local_index if isinstance(body, wire.DeviceOom) else None
        # A line that is old news may name a process id that another process has by now.
        look = _no_environment if found.backlog else environment
        return self._gpu_of_process(found.origin, local_index, look) or self._only_gpu()

    def _gpu_of_process(self, origin: wire.Origin, local_index: int | None, environment: Environment) -> str | None:
        if origin.pid is None:
            return None
        seen = self._processes.get(origin.pid)
        if seen is not None and len(seen.used_bytes) == 1:
            return next(iter(seen.used_bytes))
        visible = self._visible(origin, environment(origin.pid))
        if len(visible) == 1:
            return visible[0]
        if local_index is not None and local_index < len(visible):
            return visible[local_index]
        # Several GPUs: a process holds a small context on its peers' and its memory on its own.
        return max(seen.used_bytes, key=seen.used_bytes.__getitem__) if seen is not None else None

    def _visible(self, origin: wire.Origin, variables: Mapping[str, str] | None) -> tuple[str | None, ...]:
        """Labels of the GPUs that a process was given, in its own order; () where that cannot be known.

        Without the variable nothing is known: a Ray worker is given its GPU after it has started, which its first
        environment does not show. For the same reason a list of several is not believed of a Ray actor.
        """
        text = (variables or {}).get("CUDA_VISIBLE_DEVICES", "")
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        if len(entries) > 1 and origin.actor is not None:
            return ()
        return tuple(self._gpu_named(entry) for entry in entries)

    def _gpu_named(self, entry: str) -> str | None:
        """The label of one entry of CUDA_VISIBLE_DEVICES: an index, a UUID or the beginning of one, or a MIG id.

        Or of a UUID as torch writes it, without the driver's "GPU-" or "MIG-"."""
        if entry.isdigit():
            return next((gpu.gpu for gpu in self._gpus if gpu.gpu == entry), None)
        matching = [gpu.gpu for gpu in self._gpus if entry == _bare(gpu.uuid) or gpu.uuid.startswith(entry)]
        return matching[0] if len(matching) == 1 else self._mig_in_old_form(entry)

    def _mig_in_old_form(self, entry: str) -> str | None:
        """An id as drivers before 470 wrote it, "MIG-GPU-<uuid>/<instance>/...": known where the GPU has one slice."""
        parent = entry.removeprefix("MIG-").split("/")[0]
        matching = [gpu.gpu for gpu in self._gpus if gpu.uuid.startswith((parent, f"MIG-{parent}"))]
        return matching[0] if entry.startswith("MIG-GPU-") and len(matching) == 1 else None

    def _gpu_at(self, pci_bus_id: str) -> str | None:
        wanted = normal_bus_id(pci_bus_id)
        if wanted is None:
            return None
        matching = [gpu.gpu for gpu in self._gpus if gpu.pci_bus_id and normal_bus_id(gpu.pci_bus_id) == wanted]
        return matching[0] if len(matching) == 1 else None  # several: the MIG instances of one card

    def _only_gpu(self) -> str | None:
        return self._gpus[0].gpu if len(self._gpus) == 1 else None

    def _forget(self, now: float) -> None:
        oldest = now - self._remember_seconds
        self._processes = {pid: seen for pid, seen in self._processes.items() if seen.at >= oldest}
        self._runs = {pid: run for pid, run in self._runs.items() if run[0] >= oldest or pid in self._processes}


def _no_environment(_: int) -> None:
    return None


def _bare(uuid: str) -> str:
    return uuid.partition("-")[2]
