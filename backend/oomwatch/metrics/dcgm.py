"""What NVIDIA's dcgm-exporter would say, for dashboards that are made for it. Only where the server is told to.

Beside a real exporter on the same nodes it would double every sum, so it is off by default. Memory is in MiB and
utilization in percent here, for these are the exporter's names and units. Its clocks are left out: agents read none.
"""

from collections.abc import Iterator

from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.noderecord import NodeRecord
from oomwatch.metrics.family import Family, Reading, Room, View
from oomwatch.metrics.gpus import answers

MIB = 2**20
_LABELS, _PER = ("gpu", "UUID", "device", "modelName", "hostname", "Hostname"), ("gpu",)
USED = Family("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", _LABELS, _PER)
FREE = Family("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", _LABELS, _PER)
RESERVED = Family("DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).", _LABELS, _PER)
TEMPERATURE = Family("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", _LABELS, _PER)
POWER = Family("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", _LABELS, _PER)
UTILIZATION = Family("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", _LABELS, _PER)


def _read(view: View) -> Iterator[Reading]:
    fresh = [
        (_labels(gpu, node), gpu, gpu.sample)
        for node in view.nodes
        for gpu in node.gpus.values()
        if gpu.sample is not None and answers(gpu, node, view.now)
    ]
    yield USED.of((key, _mib(sample.used_bytes)) for key, _, sample in fresh)
    yield FREE.of(
        (key, None if sample.used_bytes is None else _mib(max(0, gpu.usable_bytes - sample.used_bytes)))
        for key, gpu, sample in fresh
    )
    yield RESERVED.of((key, _mib(gpu.facts.reserved_bytes)) for key, gpu, _ in fresh)
    yield TEMPERATURE.of((key, sample.temperature_celsius) for key, _, sample in fresh)
    yield POWER.of((key, sample.power_watts) for key, _, sample in fresh)
    yield UTILIZATION.of(
        (key, None if sample.utilization_ratio is None else 100 * sample.utilization_ratio) for key, _, sample in fresh
    )


def _labels(gpu: GpuRecord, node: NodeRecord) -> tuple[str, ...]:
    """`Hostname` is what versions before 4 of the exporter call it."""
    card = gpu.facts.gpu.partition(":")[0]  # of a part of a card (MIG)
    return gpu.facts.gpu, gpu.facts.uuid, f"nvidia{card}", gpu.facts.name, node.name, node.name


def _mib(size_bytes: int | None) -> float | None:
    return None if size_bytes is None else size_bytes // MIB


ROOM = Room((USED, FREE, RESERVED, TEMPERATURE, POWER, UTILIZATION), _read)
