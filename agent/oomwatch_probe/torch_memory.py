"""Reads the counters of torch's allocator, on the devices that the program has used.

What is called of torch takes no lock that the program could hold while it waits for this thread, makes no context on a
device, and changes nothing. The counters are read with the interpreter's lock held, as torch reads them itself.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

MAX_DEVICES = 32  # the message stays small; a process that uses more GPUs than this tells of the first

# Our names of the counters, and the way to each in torch.cuda.memory_stats_as_nested_dict.
COUNTERS = {
    "reserved_bytes": ("reserved_bytes", "all", "current"),
    "allocated_bytes": ("allocated_bytes", "all", "current"),
    "active_bytes": ("active_bytes", "all", "current"),
    "inactive_split_bytes": ("inactive_split_bytes", "all", "current"),
    "reserved_peak_bytes": ("reserved_bytes", "all", "peak"),
    "allocated_peak_bytes": ("allocated_bytes", "all", "peak"),
    "alloc_retries_total": ("num_alloc_retries",),
    "ooms_total": ("num_ooms",),
}


def initialised_cuda() -> ModuleType | None:
    """torch.cuda, once the program has imported it to the end and initialised CUDA; else None. Imports nothing."""
    cuda = sys.modules.get("torch.cuda")
    if cuda is None or "torch" not in sys.modules or getattr(cuda.__spec__, "_initializing", False):
        return None
    # In the child of a process that had initialised CUDA, where torch refuses to work, this is False.
    return cuda if cuda.is_initialized() else None


class TorchMemory:
    """The devices of one process. One that was once used is told of for good: then 0 is a reading and not a gap."""

    def __init__(self) -> None:
        self.errors = 0
        self._used: set[int] = set()
        self._uuids: dict[int, str | None] = {}

    def read(self, cuda: ModuleType) -> list[dict[str, Any]]:
        """The counters of each used device, by our names, with the process' own index and the device's UUID."""
        found = []
        for index in range(min(cuda.device_count(), MAX_DEVICES)):
            try:
                counters = _counters(cuda.memory_stats_as_nested_dict(index))
            except Exception:  # an allocator of the program's own keeps no statistics
                self.errors += 1
                continue
            if counters.get("reserved_peak_bytes"):
                self._used.add(index)
            if index in self._used:
                found.append(dict(counters, index=index, uuid=self._uuid(cuda, index)))
        return found

    def _uuid(self, cuda: ModuleType, index: int) -> str | None:
        if index not in self._uuids:
            uuid = getattr(cuda.get_device_properties(index), "uuid", None)  # torch has it since 2.4
            self._uuids[index] = None if uuid is None else str(uuid)
        return self._uuids[index]


def _counters(stats: object) -> dict[str, int]:
    """What is there of the counters that we know; torch gives {} where it is not initialised."""
    found = {}
    for name, way in COUNTERS.items():
        value: object = stats
        for key in way:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int) and value >= 0:
            found[name] = value
    return found
