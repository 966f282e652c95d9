"""What a node of 8 GPUs reads, second by second: once as an agent's frame, once as an exporter's page.

Ten minutes are made up and then repeated, longer than anything that is measured, so that no compression finds the same
again. They look like a colocated trainer's: memory that stays put within a phase and jumps between two, whole percents
of utilisation, noisy watts. Every node is somewhere else in them.
"""

import functools
import random
from typing import Any, NamedTuple

from oomwatch import wire

GIB, MIB = 2**30, 2**20
GPUS = 8
CARD_BYTES, HOST_BYTES = 80 * GIB, 2000 * GIB
PERIOD_SECONDS = 600
STEP_SECONDS, ROLLOUT_SECONDS = 97, 40
PROCESSES_SECONDS = 10  # a real agent lists processes so often
FULL_BYTES = 76 * GIB
GPU_VALUES, HOST_VALUES = 5, 7  # of a reading
NONE_FULL, ALL_FULL = frozenset[int](), frozenset(range(GPUS))
_HEAD = '{"type":"sample","seq":0,"at":0.0'


class Reading(NamedTuple):
    gpus: tuple[wire.GpuSample, ...]
    host: wire.HostSample


def node_name(number: int) -> str:
    return f"node-{number:05}"


@functools.cache
def reading(second: int) -> Reading:
    """What is read in this second of the ten minutes."""
    dice = random.Random(second)
    listed = second % PROCESSES_SECONDS == 0
    gpus = tuple(_gpu(gpu, second, dice, listed=listed) for gpu in range(GPUS))
    host = wire.HostSample(
        memory_used_bytes=400 * GIB + 4096 * dice.randrange(50_000),
        cgroup_used_bytes=380 * GIB + 4096 * dice.randrange(50_000),
        swap_used_bytes=0,
        shm_used_bytes=(20 + second // 60) * GIB,
        memory_pressure_some_ratio=dice.randrange(100) / 10_000,
        memory_pressure_full_ratio=0.0,
        oom_kill_total=0,
        processes=_host_processes(dice) if listed else None,
    )
    return Reading(gpus, host)


def full(read: Reading, gpus: frozenset[int]) -> Reading:
    """The same, but these GPUs are full."""
    return Reading(tuple(_filled(one) if index in gpus else one for index, one in enumerate(read.gpus)), read.host)


def _filled(one: wire.GpuSample) -> wire.GpuSample:
    return wire.GpuSample(gpu=one.gpu, used_bytes=FULL_BYTES, utilization_ratio=one.utilization_ratio,
                          power_watts=one.power_watts, temperature_celsius=one.temperature_celsius,
                          ecc_uncorrected_total=0, processes=one.processes)  # fmt: skip


def hello(node: str, now: float) -> wire.Hello:
    gpus = tuple(
        wire.GpuFacts(gpu=str(index), uuid=f"GPU-{node}-{index}", name="NVIDIA H100 80GB HBM3", total_bytes=CARD_BYTES)
        for index in range(GPUS)
    )
    facts = wire.NodeFacts(gpus=gpus, host=wire.HostFacts(memory_total_bytes=HOST_BYTES))
    return wire.Hello(protocol=1, agent_version="bench", node=node, session=f"session of {node}", sent_at=now,
                      interval_seconds=1.0, facts=facts)  # fmt: skip


def frame(seq: int, at: float, rest: bytes) -> bytes:
    """A sample as an agent sends it. `rest`: what `body` gave."""
    return b'{"type":"sample","seq":%d,"at":%.3f%s' % (seq, at, rest)


@functools.cache
def body(second: int, full_gpus: frozenset[int] = NONE_FULL) -> bytes:
    """A sample's text behind its number and time."""
    read = full(reading(second), full_gpus)
    return wire.encode(wire.Sample(seq=0, at=0.0, gpus=read.gpus, host=read.host))[len(_HEAD) :]


@functools.cache
def page(second: int, full_gpus: frozenset[int] = NONE_FULL) -> bytes:
    """The same values as Prometheus reads them, by the names of the exported rules.

    What these divide, the exporter has divided for them.
    """
    read = full(reading(second), full_gpus)
    of_gpu: dict[str, list[Any]] = {
        "gpu_memory_used_bytes": [one.used_bytes for one in read.gpus],
        "gpu_used_ratio": [(one.used_bytes or 0) / CARD_BYTES for one in read.gpus],
        "gpu_utilization_ratio": [one.utilization_ratio for one in read.gpus],
        "gpu_power_watts": [one.power_watts for one in read.gpus],
        "gpu_temperature_celsius": [one.temperature_celsius for one in read.gpus],
        "gpu_ecc_uncorrected_total": [one.ecc_uncorrected_total for one in read.gpus],
    }
    host = read.host
    of_host = {
        "host_memory_used_bytes": host.memory_used_bytes,
        "host_memory_ratio": (host.memory_used_bytes or 0) / HOST_BYTES,
        "host_cgroup_used_bytes": host.cgroup_used_bytes,
        "host_swap_used_bytes": host.swap_used_bytes,
        "host_shm_used_bytes": host.shm_used_bytes,
        "host_memory_pressure_some_ratio": host.memory_pressure_some_ratio,
        "host_memory_pressure_full_ratio": host.memory_pressure_full_ratio,
        "host_oom_kill_total": host.oom_kill_total,
    }
    lines = []
    for name, values in of_gpu.items():
        lines.append(f"# TYPE oomwatch_{name} gauge")
        lines += [f'oomwatch_{name}{{gpu="{index}"}} {value}' for index, value in enumerate(values)]
    for name, one in of_host.items():
        lines += [f"# TYPE oomwatch_{name} gauge", f"oomwatch_{name} {one}"]
    return ("\n".join(lines) + "\n").encode()


def _gpu(gpu: int, second: int, dice: random.Random, *, listed: bool) -> wire.GpuSample:
    step, within = divmod(second, STEP_SECONDS)
    training = within >= ROLLOUT_SECONDS
    used_mib = (50_000 + 13 * step + 2 * (within // 9)) if training else 62_400 + 2 * (step % 3)
    used_bytes = (used_mib + 2 * gpu) * MIB
    return wire.GpuSample(
        gpu=str(gpu),
        used_bytes=used_bytes,
        utilization_ratio=dice.choice((0.97, 0.98, 0.99, 1.0)) if training else dice.randrange(20, 100) / 100,
        power_watts=round(dice.gauss(640 if training else 420, 9), 3),
        temperature_celsius=float(61 + gpu % 3 + dice.choice((0, 0, 0, 1))),
        ecc_uncorrected_total=0,
        processes=_processes(used_bytes, training=training) if listed else None,
    )


def _processes(used_bytes: int, *, training: bool) -> tuple[wire.GpuProcess, ...]:
    engine_bytes = 4 * GIB if training else used_bytes - 8 * GIB
    trainer = wire.GpuProcess(pid=1, name="ray::WorkerDict", used_bytes=used_bytes - engine_bytes)
    return trainer, wire.GpuProcess(pid=2, name="VLLM::Worker", used_bytes=engine_bytes, role="rollout")


def _host_processes(dice: random.Random) -> tuple[wire.HostProcess, ...]:
    names = ("ray::TaskRunner", "VLLM::EngineCore", *["ray::WorkerDict"] * GPUS)
    return tuple(
        wire.HostProcess(pid=pid, name=name, rss_bytes=20 * GIB + 4096 * dice.randrange(50_000))
        for pid, name in enumerate(names)
    )
