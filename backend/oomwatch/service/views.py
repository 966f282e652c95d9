"""What nodes look like to people: pure functions from the core's records to wire's views."""

from itertools import groupby

from msgspec.structs import replace

from oomwatch import wire
from oomwatch.core import allocator
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.noderecord import NodeRecord

MIB = 2**20
PERCENT = 100
ENGINES_SHOWN_SECONDS = 60.0  # engines are asked every ten: one that was not heard for longer may be gone


def state_of(node: NodeRecord, now: float) -> wire.NodeState:
    """Whether its agent said goodbye, is being heard, or has fallen silent."""
    if node.stopped:
        return "stopped"
    return "silent" if now - node.heard_at > node.stale_after_seconds else "live"


def brief_view(node: NodeRecord, now: float, *, skew_seconds: float) -> wire.Node:
    """A node with its facts, and of its latest reading what ticks tell."""
    hello = node.hello
    return wire.Node(
        node=node.name,
        state=state_of(node, now),
        last_seen_at=node.heard_at,
        agent_version=hello.agent_version,
        interval_seconds=hello.interval_seconds,
        facts=hello.facts,
        run=node.sole_run() or hello.run,
        gpu_runs=gpu_runs(node),
        simulated=hello.simulated,
        skew_seconds=skew_seconds,
        reading=node_tick(node) if last_read_at(node) else None,
    )


def node_view(node: NodeRecord, now: float, *, skew_seconds: float) -> wire.Node:
    """A node with all that was read of it last."""
    return replace(brief_view(node, now, skew_seconds=skew_seconds), sample=_latest(node))


def at_a_glance(view: wire.Node) -> wire.Node:
    """A brief view as those are told it who did not ask for the node: of cards, what every view shows."""
    facts = view.facts
    return replace(view, facts=replace(facts, gpus=()), cards=cards_of(facts.gpus))


def cards_of(gpus: tuple[wire.GpuFacts, ...]) -> tuple[wire.CardsAlike, ...]:
    """GPUs in their order, those that are alike together."""
    return tuple(
        [
            wire.CardsAlike(
                gpus=tuple([gpu.gpu for gpu in alike]), name=name, total_bytes=total, reserved_bytes=reserved, mig=mig
            )
            for (name, total, reserved, mig), alike in groupby(gpus, _kind)
        ]
    )


def _kind(gpu: wire.GpuFacts) -> tuple[str, int, int, bool]:
    return gpu.name, gpu.total_bytes, gpu.reserved_bytes, gpu.mig


def gpu_runs(node: NodeRecord) -> tuple[str | None, ...]:
    """The run on each GPU: of its processes, else the node's where it has but one."""
    sole = node.sole_run()
    return tuple([gpu.run or sole for gpu in node.gpus.values()])


def _latest(node: NodeRecord) -> wire.Sample | None:
    """The last readings put together as one sample, with the processes and engines that were read last."""
    at = last_read_at(node)
    if at == 0:
        return None
    return wire.Sample(
        seq=0,
        at=at,
        gpus=tuple(_gpu_sample(gpu) for gpu in node.gpus.values()),
        host=_host_sample(node),
        torch=tuple(one for one in node.torch if one.pid != allocator.TOGETHER_PID),
        engines=engines_of(node),
    )


def engines_of(node: NodeRecord) -> tuple[wire.EngineSample, ...]:
    """The rollout engines that were heard lately."""
    return node.engines if last_read_at(node) - node.engines_at <= ENGINES_SHOWN_SECONDS else ()


def last_read_at(node: NodeRecord) -> float:
    """When the node's newest reading was made, on the server's clock; 0 where there is none."""
    return max([gpu.at for gpu in node.gpus.values()], default=0.0) or node.host_at


def _gpu_sample(gpu: GpuRecord) -> wire.GpuSample:
    last = gpu.sample if gpu.status == "ok" else None
    return wire.GpuSample(
        gpu=gpu.facts.gpu,
        status=gpu.status,
        used_bytes=last.used_bytes if last else None,
        utilization_ratio=last.utilization_ratio if last else None,
        power_watts=last.power_watts if last else None,
        temperature_celsius=last.temperature_celsius if last else None,
        ecc_uncorrected_total=last.ecc_uncorrected_total if last else None,
        processes=gpu.processes,
    )


def _host_sample(node: NodeRecord) -> wire.HostSample | None:
    host = node.host
    if host is None:
        return None
    return wire.HostSample(
        memory_used_bytes=host.memory_used_bytes,
        cgroup_used_bytes=host.cgroup_used_bytes,
        swap_used_bytes=host.swap_used_bytes,
        shm_used_bytes=host.shm_used_bytes,
        disk_used_bytes=host.disk_used_bytes,
        memory_pressure_some_ratio=host.memory_pressure_some_ratio,
        memory_pressure_full_ratio=host.memory_pressure_full_ratio,
        oom_kill_total=host.oom_kill_total,
        processes=node.host_processes,
    )


def node_tick(node: NodeRecord) -> wire.NodeTick:
    """The node's latest reading as columns. A GPU that did not answer in it is None."""
    gpus = node.gpus.values()
    at = last_read_at(node)
    # A GPU whose last answer is older than the node's last sample did not answer in that one.
    read = [gpu.sample if gpu.sample is not None and gpu.status == "ok" and gpu.at >= at else None for gpu in gpus]
    host = node.host
    return wire.NodeTick(
        node=node.name,
        at=round(at, 3),
        used_mib=tuple([_mib(sample.used_bytes) if sample else None for sample in read]),
        utilization_percent=tuple([_percent(sample.utilization_ratio) if sample else None for sample in read]),
        status=tuple(gpu.status for gpu in gpus) if any(gpu.status != "ok" for gpu in gpus) else None,
        torch_reserved_mib=_torch_mib(node) if node.torch else None,
        host_used_mib=_mib(host.memory_used_bytes) if host else None,
        cgroup_used_mib=_mib(host.cgroup_used_bytes) if host else None,
    )


def _torch_mib(node: NodeRecord) -> tuple[int | None, ...] | None:
    sums = allocator.by_gpu(node.torch)
    columns = tuple([_mib(sums.get(label, allocator.UNKNOWN).reserved_bytes) for label in node.gpus])
    return columns if any(amount is not None for amount in columns) else None


def _mib(amount_bytes: int | None) -> int | None:
    return None if amount_bytes is None else amount_bytes // MIB


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else round(ratio * PERCENT)
