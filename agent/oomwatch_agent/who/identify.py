"""Whose process was that? From a process id to the GPU's label. PURE: what is read of a process is an argument.

A log line says "GPU 0" and means the process' own first GPU: in a Ray cluster every worker says 0. The truth is in the
driver's process tables, which name the processes on each GPU (census.py). A driver's log also holds lines of other
nodes: their processes are none of ours.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Found
from oomwatch_agent.who.census import Census
from oomwatch_agent.who.devices import Given, given

# What a process was started with, by name; None where it may not be read or the process is gone.
Environment = Callable[[int], Mapping[str, str] | None]

_OF_A_GPU = (
    wire.TorchMemory,
    wire.EngineSleep,
    wire.EngineWake,
    wire.EngineMemory,
    wire.DeviceOom,
    wire.GpuLost,
    wire.NcclError,
)
_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-9a-f])?", re.IGNORECASE)


def normal_bus_id(text: str) -> tuple[int, int, int] | None:
    """Domain, bus and device of "0000:3B:00", "00000000:3B:00.0" or "3b:00.0"; None for anything else."""
    match = _BUS_ID.fullmatch(text.strip().removeprefix("PCI:"))
    if match is None:
        return None
    domain, bus, device = match.groups()
    return int(domain or "0", 16), int(bus, 16), int(device, 16)


class Identifier:
    """Gives events and readings of torch the GPU that they are about. Times are seconds of one clock."""

    def __init__(self, census: Census) -> None:
        self._census = census
        self._gpus: tuple[wire.GpuFacts, ...] = ()
        self._addresses: frozenset[str] = frozenset()

    def know(self, facts: wire.NodeFacts) -> None:
        """The GPUs of this node, in the driver's order, and its addresses."""
        self._gpus = facts.gpus
        self._addresses = frozenset(facts.host.addresses) if facts.host else frozenset()

    def is_foreign(self, origin: wire.Origin) -> bool:
        """Whether a process of another node wrote this. Ray names the address of those that are not on the driver's."""
        return origin.ip is not None and origin.ip not in self._addresses

    def place(self, found: Found, now: float, environment: Environment) -> Found:
        """The same event with its run, GPU and rank filled in, where they can be known."""
        if self.is_foreign(found.origin):
            return found
        self._census.hear_line(found, now)
        gpu = None if isinstance(found.body, wire.Probe) else self._gpu_of(found, environment)
        if isinstance(found.body, wire.Probe):
            found = msgspec.structs.replace(found, body=self._labelled(found.body, found.origin.pid))
        elif gpu is not None:
            found = msgspec.structs.replace(found, body=msgspec.structs.replace(found.body, gpu=gpu))
        return self._attributed(found)

    def _attributed(self, found: Found) -> Found:
        run, origin = self._census.run_of(found), found.origin
        if origin.rank is None and origin.pid is not None and not found.backlog:
            origin = msgspec.structs.replace(origin, rank=self._census.identity(origin.pid).rank)
        if run == found.run and origin == found.origin:
            return found
        return msgspec.structs.replace(found, run=run, origin=origin)

    def place_torch(self, sample: wire.TorchSample) -> wire.TorchSample:
        """The same sample with its GPU's label for what the process calls the device, where that can be known."""
        known = self._census.identity(sample.pid)
        return msgspec.structs.replace(
            sample,
            gpu=self._gpu_of_device(sample.gpu, sample.pid),
            run=self._census.named(known.run or sample.run),
            rank=sample.rank if sample.rank is not None else known.rank,
            role=sample.role or known.role,
        )

    def _labelled(self, probe: wire.Probe, pid: int | None) -> wire.Probe:
        labels = (self._gpu_of_device(device, pid) for device in probe.gpus)
        return msgspec.structs.replace(probe, gpus=tuple(label for label in labels if label is not None))

    def _gpu_of_device(self, device: str | None, pid: int | None) -> str | None:
        """A UUID is certain. An index may be a container's own, so that the driver's process table is better."""
        on_gpus = self._census.on_gpus(pid) if pid is not None else {}
        in_table = next(iter(on_gpus)) if len(on_gpus) == 1 else None
        named = self._gpu_named(Given(device)) if device is not None else None
        if device is not None and device.isdigit():
            return in_table or named or self._only_gpu()
        return named or in_table or (self._only_gpu() if device is None else None)

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
        on_gpus = self._census.on_gpus(origin.pid)
        if len(on_gpus) == 1:
            return next(iter(on_gpus))
        visible = self._visible(origin, environment(self._census.process(origin.pid) or origin.pid))
        if len(visible) == 1:
            return visible[0]
        if local_index is not None and local_index < len(visible):
            return visible[local_index]
        # Several GPUs: a process holds a small context on its peers' and its memory on its own.
        return max(on_gpus, key=on_gpus.__getitem__, default=None)

    def _visible(self, origin: wire.Origin, variables: Mapping[str, str] | None) -> tuple[str | None, ...]:
        """Labels of the GPUs that a process was given, in its own order; () where that cannot be known.

        Without a variable nothing is known: a Ray worker is given its GPU after it has started, which its first
        environment does not show. For the same reason a list of several is not believed of a Ray actor.
        """
        entries = given(variables or {})
        if len(entries) > 1 and origin.actor is not None:
            return ()
        return tuple(self._gpu_named(entry) for entry in entries)

    def _gpu_named(self, device: Given) -> str | None:
        """The label of one entry of CUDA_VISIBLE_DEVICES or its like: an index, a UUID or its beginning, or a MIG id.

        Or of a UUID as torch writes it, without the driver's "GPU-" or "MIG-"."""
        entry = device.entry
        if entry.isdigit():
            labels = [gpu.gpu for gpu in self._gpus]
            beside_others = device.prefix and any(label.startswith(device.prefix) for label in labels)
            label = device.prefix + entry if beside_others else entry
            return label if label in labels else None
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


def _no_environment(_: int) -> None:
    return None


def _bare(uuid: str) -> str:
    return uuid.partition("-")[2]
