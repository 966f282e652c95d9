"""What a GPU is, and what its driver says."""

from collections.abc import Iterator

from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.noderecord import NodeRecord
from oomwatch.metrics.family import OF_GPU, Family, Reading, Room, View

USED = Family("oomwatch_gpu_memory_used_bytes", "gauge", "Device memory in use.", OF_GPU, ("gpu",))
USABLE = Family("oomwatch_gpu_memory_usable_bytes", "gauge",
                "Device memory without what the driver keeps for itself.", OF_GPU, ("gpu",))  # fmt: skip
UTILIZATION = Family("oomwatch_gpu_utilization_ratio", "gauge",
                     "Share of time in which a kernel ran.", OF_GPU, ("gpu",))  # fmt: skip
POWER = Family("oomwatch_gpu_power_watts", "gauge", "Power draw.", OF_GPU, ("gpu",))
TEMPERATURE = Family("oomwatch_gpu_temperature_celsius", "gauge", "Temperature.", OF_GPU, ("gpu",))
INFO = Family("oomwatch_gpu", "info", "What a GPU is.", ("node", "gpu", "uuid", "name", "driver"), ("gpu",))


def answers(gpu: GpuRecord, node: NodeRecord, now: float) -> bool:
    """Whether its last reading is of now."""
    return gpu.sample is not None and gpu.status == "ok" and now - gpu.at <= node.stale_after_seconds


def _read(view: View) -> Iterator[Reading]:
    gpus = [(node, gpu) for node in view.nodes for gpu in node.gpus.values()]
    fresh = [
        ((node.name, gpu.facts.gpu), gpu.sample)
        for node, gpu in gpus
        if gpu.sample is not None and answers(gpu, node, view.now)
    ]
    yield USED.of((key, sample.used_bytes) for key, sample in fresh)
    yield USABLE.of(((node.name, gpu.facts.gpu), gpu.usable_bytes) for node, gpu in gpus)
    yield UTILIZATION.of((key, sample.utilization_ratio) for key, sample in fresh)
    yield POWER.of((key, sample.power_watts) for key, sample in fresh)
    yield TEMPERATURE.of((key, sample.temperature_celsius) for key, sample in fresh)
    yield INFO.info(
        {"node": node.name, "gpu": gpu.facts.gpu, "uuid": gpu.facts.uuid, "name": gpu.facts.name,
         "driver": gpu.facts.driver_version or ""}
        for node, gpu in gpus
    )  # fmt: skip


ROOM = Room((USED, USABLE, UTILIZATION, POWER, TEMPERATURE, INFO), _read)
