"""torch's allocator: by role where probes tell, else what a log line said last."""

from collections.abc import Iterable, Iterator

from oomwatch import wire
from oomwatch.core.allocator import TOGETHER_PID, UNKNOWN, Allocator, plus
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.window import WINDOW_SECONDS_MAX
from oomwatch.metrics.family import Family, Reading, Room, View

_LABELS, _PER = ("node", "gpu", "run", "role"), ("gpu", "role")  # without a probe there is no role
RESERVED = Family("oomwatch_torch_reserved_bytes", "gauge",
                  "Memory that torch's allocator has reserved.", _LABELS, _PER)  # fmt: skip
ALLOCATED = Family("oomwatch_torch_allocated_bytes", "gauge",
                   "Memory that tensors hold, of what torch has reserved.", _LABELS, _PER)  # fmt: skip
RETRIES = Family("oomwatch_torch_alloc_retries", "counter",
                 "Times that torch's allocator flushed its cache to survive.", _LABELS, _PER)  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    fresh = dict(_probed(view.nodes, view.now))
    probed = {key[:2] for key in fresh}
    for (node, gpu, run), point in view.service.picture.torch_latest.items():
        if view.now - point.at <= WINDOW_SECONDS_MAX and (node, gpu) not in probed:
            memory = point.memory
            fresh[node, gpu or "", run or "", ""] = Allocator(memory.reserved_bytes, memory.allocated_bytes)
    yield RESERVED.of((key, sums.reserved_bytes) for key, sums in fresh.items())
    yield ALLOCATED.of((key, sums.allocated_bytes) for key, sums in fresh.items())
    yield RETRIES.of((key, sums.alloc_retries_total) for key, sums in fresh.items())


def _probed(nodes: Iterable[NodeRecord], now: float) -> Iterator[tuple[tuple[str, str, str, str], Allocator]]:
    """Sums over the processes of each role on each GPU that a probe is on."""
    for node in nodes:
        sums: dict[tuple[str, str, str, str], Allocator] = {}
        for reading in node.torch:
            gpu = node.gpus.get(reading.gpu or "")
            if gpu is not None and reading.pid != TOGETHER_PID and now - gpu.probed_at <= node.stale_after_seconds:
                role = reading.role if reading.role in wire.ROLES else ""  # a label's values are few
                key = (node.name, gpu.facts.gpu, reading.run or gpu.run or "", role)
                sums[key] = plus(sums.get(key, UNKNOWN), reading)
        yield from sums.items()


ROOM = Room((RESERVED, ALLOCATED, RETRIES), _read)
