"""Fleets to show in a browser: whole snapshots, and the ticks that move them. The same time gives the same numbers."""

import math
from collections.abc import Iterable

import msgspec

from oomwatch import wire
from oomwatch.service import views

GIB = 2**30
MIB = 2**20
TOTAL_BYTES = 85_520_809_984  # an H100 80 GB, as NVML says it
RESERVED_BYTES = 629_145_600
STEP_SECONDS = 94.0
RUN = "qwen7b_grpo"


def used_bytes(node: int, gpu: int, at: float, level: float = 0.55) -> int:
    """The sawtooth of a colocated trainer: low after the engine slept, high in rollout and update."""
    phase = (at / STEP_SECONDS + node * 0.13 + gpu * 0.011) % 1
    share = level + 0.22 * abs(math.sin(math.pi * phase * 2)) * (0.85 + 0.15 * math.sin(gpu + node))
    if phase > 0.94:  # the moment of the switch
        share -= 0.3
    return int(min(0.985, share) * (TOTAL_BYTES - RESERVED_BYTES))


def gpu_facts(index: int) -> wire.GpuFacts:
    return wire.GpuFacts(
        gpu=str(index),
        uuid=f"GPU-5a7c1f0e-{index:04d}",
        name="NVIDIA H100 80GB HBM3",
        total_bytes=TOTAL_BYTES,
        reserved_bytes=RESERVED_BYTES,
        pci_bus_id=f"00000000:{0x1B + index:02X}:00.0",
        power_limit_watts=700.0,
        driver_version="570.86.15",
    )


SOURCES = (
    wire.SourceFacts(name="nvml", state="ok"),
    wire.SourceFacts(name="host", state="ok"),
    wire.SourceFacts(name="ray", state="ok", detail="17 files of session_2026-11-29_09-12-44"),
)
HOST = wire.HostFacts(
    memory_total_bytes=2016 * GIB,
    memory_limit_bytes=1024 * GIB,
    memory_limit_source="cgroup v2",
    cpu_count=192,
    hostname="gpu-01",
    kernel="6.8.0-45-generic",
)


def processes(used: int, gpu: int = 0, node: int = 1) -> tuple[wire.GpuProcess, ...]:
    engine = used * 3 // 10
    return (
        wire.GpuProcess(
            pid=25520 + gpu,
            used_bytes=used - engine - GIB,
            name="ray::WorkerDict.actor_rollout_update_actor",
            run=RUN,
            rank=8 * (node - 1) + gpu,
            role="actor",
        ),
        wire.GpuProcess(pid=25877, used_bytes=engine, name="VLLM::EngineCore_DP0", run=RUN, role="rollout"),
        wire.GpuProcess(pid=2310, used_bytes=GIB // 3, name="/usr/bin/dcgm-exporter"),
    )


def trainer_bytes(node: int, gpu: int, at: float, level: float) -> int:
    """What its process holds: as in `processes`."""
    used = used_bytes(node, gpu, at, level)
    return used - used * 3 // 10 - GIB


def torch_bytes(node: int, gpu: int, at: float, level: float) -> int:
    """What the trainer's allocator has reserved: it creeps, and follows less of the sawtooth than the device."""
    return used_bytes(node, gpu, at, level) * 5 // 8


def probes(number: int, gpus: int, at: float, level: float) -> tuple[wire.TorchSample, ...]:
    """A probe in the trainer of each GPU but the last."""
    return tuple(
        wire.TorchSample(
            pid=25520 + gpu,
            gpu=str(gpu),
            run=RUN,
            rank=8 * (number - 1) + gpu,
            role="actor",
            reserved_bytes=(reserved := torch_bytes(number, gpu, at, level)),
            allocated_bytes=reserved * 4 // 5,
            inactive_split_bytes=reserved // 20,
            alloc_retries_total=gpu % 3,
            ooms_total=0,
        )
        for gpu in range(gpus - 1)
    )


ENGINES = (
    wire.EngineSample(
        engine="vllm",
        address="10.0.0.11:8000",
        model="Qwen2.5-7B-Instruct",
        run=RUN,
        kv_used_ratio=0.93,
        requests_running=240,
        requests_waiting=12,
        preemptions_total=41,
    ),
    wire.EngineSample(engine="sglang", address="10.0.0.11:30000", kv_used_ratio=0.41, requests_running=16),
)


def node(number: int, at: float, *, gpus: int = 8, run: str | None = RUN, level: float = 0.55) -> wire.Node:
    samples = []
    for gpu in range(gpus):
        used = used_bytes(number, gpu, at, level)
        samples.append(
            wire.GpuSample(
                gpu=str(gpu),
                used_bytes=used,
                utilization_ratio=0.9,
                power_watts=611.0 + gpu,
                temperature_celsius=61.0 + gpu,
                ecc_uncorrected_total=0,
                processes=processes(used, gpu, number),
            )
        )
    host = wire.HostSample(
        memory_used_bytes=900 * GIB,
        cgroup_used_bytes=int((430 + 31 * (number % 12)) * GIB),
        processes=(
            wire.HostProcess(pid=4242, name="ray::TaskRunner.run", rss_bytes=118 * GIB, run=run),
            wire.HostProcess(pid=25520, name="ray::WorkerDict.actor_rollout", rss_bytes=37 * GIB, run=run),
        ),
    )
    return wire.Node(
        node=f"gpu-{number:02d}",
        state="live",
        last_seen_at=at,
        agent_version="1.0.0",
        interval_seconds=1.0,
        facts=wire.NodeFacts(gpus=tuple(gpu_facts(gpu) for gpu in range(gpus)), host=HOST, sources=SOURCES),
        run=run,
        gpu_runs=(run,) * gpus,
        sample=wire.Sample(
            seq=0, at=at, gpus=tuple(samples), host=host, torch=probes(number, gpus, at, level), engines=ENGINES
        ),
    )


def _mib(amount: int | None) -> int | None:
    return None if amount is None else amount // MIB


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else round(100 * ratio)


def reading(view: wire.Node) -> wire.NodeTick | None:
    """What ticks tell of a node's sample."""
    if (sample := view.sample) is None:
        return None
    of = {one.gpu: one for one in sample.gpus}
    read = [of.get(facts.gpu, wire.GpuSample(gpu=facts.gpu, status="no_data")) for facts in view.facts.gpus]
    reserved = {one.gpu: one.reserved_bytes for one in sample.torch}
    return wire.NodeTick(
        node=view.node,
        at=sample.at,
        used_mib=tuple(_mib(one.used_bytes) for one in read),
        utilization_percent=tuple(_percent(one.utilization_ratio) for one in read),
        status=tuple(one.status for one in read),
        torch_reserved_mib=tuple(_mib(reserved.get(one.gpu)) for one in read),
        host_used_mib=_mib(sample.host.memory_used_bytes) if sample.host else None,
        cgroup_used_mib=_mib(sample.host.cgroup_used_bytes) if sample.host else None,
    )


def in_full(view: wire.Node) -> wire.Node:
    """As the server tells of a node that is asked for."""
    return msgspec.structs.replace(view, reading=reading(view))


def at_a_glance(view: wire.Node) -> wire.Node:
    """As the server tells every browser of a node."""
    return views.at_a_glance(msgspec.structs.replace(view, reading=reading(view), sample=None, together=None))


def told(message: wire.LiveMessage) -> wire.LiveMessage:
    """As browsers are sent it."""
    return wire.NodeChanged(node=at_a_glance(message.node)) if isinstance(message, wire.NodeChanged) else message


def tick(nodes: Iterable[wire.Node], at: float, levels: dict[str, float] | None = None) -> wire.Tick:
    """The readings at `at` of those nodes that are live."""
    readings = []
    for view in nodes:
        if view.state != "live":
            continue
        number = int(view.node.rsplit("-", 1)[1])
        level = (levels or {}).get(view.node, 0.55)
        statuses = {sample.gpu: sample.status for sample in (view.sample.gpus if view.sample else ())}
        status = tuple(statuses.get(facts.gpu, "ok") for facts in view.facts.gpus)
        used = [used_bytes(number, gpu, at, level) // MIB for gpu in range(len(status))]
        host = view.sample.host if view.sample else None
        readings.append(
            wire.NodeTick(
                node=view.node,
                at=at,
                used_mib=tuple(amount if state == "ok" else None for amount, state in zip(used, status, strict=True)),
                utilization_percent=tuple(90 if state == "ok" else None for state in status),
                status=status if set(status) != {"ok"} else None,
                torch_reserved_mib=(
                    *(torch_bytes(number, gpu, at, level) // MIB for gpu in range(len(status) - 1)),
                    None,
                ),
                host_used_mib=900 * 1024,
                cgroup_used_mib=host.cgroup_used_bytes // MIB if host and host.cgroup_used_bytes else None,
            )
        )
    return wire.Tick(at=at, nodes=tuple(readings))


def steps(count: int, until: float) -> tuple[wire.StepPoint, ...]:
    """A run whose responses grow, whose allocator creeps up, and whose last rollouts are slow."""
    points = []
    for number in range(1, count + 1):
        slow = 2.6 if number > count - 3 else 1.0
        wave = 0.04 * math.sin(number * 1.7)
        rollout = (31 + 0.12 * number) * (1 + wave) * slow
        length = 840 + 5.5 * number + 60 * wave * 10
        step = wire.Step(
            step=number,
            step_seconds=rollout + 61 + 2 * wave * 10,
            rollout_seconds=rollout,
            reshard_seconds=1.9 + 0.3 * math.sin(number),
            torch_reserved_peak_bytes=int((52.5 + 0.21 * number) * GIB),
            torch_allocated_peak_bytes=int((44.0 + 0.12 * number) * GIB),
            host_used_bytes=int((430 + 0.9 * number) * GIB),
            response_length_mean_tokens=length,
            response_length_max_tokens=2048.0,
            response_clip_ratio=0.07,
        )
        points.append(wire.StepPoint(at=until - (count - number) * STEP_SECONDS, step=step))
    return tuple(points)


# A step of 94 s, as verl lays it out.
PHASES = {"rollout": 34.0, "reward": 4.0, "old_log_prob": 11.0, "ref": 9.0, "update_actor": 31.0, "update_weights": 5.0}


def phases(count: int, until: float) -> tuple[wire.PhaseSpan, ...]:
    """Those of the last ten minutes: rollouts marked, the rest cut afterwards; a rollout has just begun."""
    spans = []
    for number in range(max(1, count - 6), count + 1):
        at = until - (count - number + 1) * STEP_SECONDS
        for phase, seconds in PHASES.items():
            known_by: wire.PhaseKnownBy = "mark" if phase == "rollout" else "step line"
            spans.append(wire.PhaseSpan(start_at=at, end_at=at + seconds, phase=phase, step=number, known_by=known_by))
            at += seconds
    return (*spans, wire.PhaseSpan(start_at=until, phase="rollout", known_by="mark"))


COVERAGE = (
    wire.Coverage(signal="step_line", source="worker-f1.out", count=60),
    wire.Coverage(signal="rollout_seconds", source="worker-f1.out", count=60),
    wire.Coverage(
        signal="response_length",
        source="worker-f1.out",
        count=41,
        problem="missing_since_step",
        step=42,
        texts={"en": "missing since step 42", "zh": "自第 42 步起缺失"},
    ),
    wire.Coverage(signal="torch_reserved", source="probe", count=5400),
    wire.Coverage(
        signal="reshard_cycles",
        problem="no_reshard_marker",
        texts={
            "en": "no reshard marker and no timing of it: set VERL_LOGGING_LEVEL=DEBUG",
            "zh": "既没有 reshard 标记也没有其耗时：请设置 VERL_LOGGING_LEVEL=DEBUG",
        },
    ),
    wire.Coverage(signal="config", source="worker-f1.out", count=1),
)
CONFIG: dict[str, wire.ConfigValue] = {
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "actor_rollout_ref.rollout.n": 12,
    "actor_rollout_ref.rollout.free_cache_engine": True,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
    "data.max_response_length": 2048,
    "data.train_batch_size": 256,
}


def run(at: float, nodes: Iterable[str], count: int = 60, name: str = RUN) -> wire.Run:
    return wire.Run(
        run=name,
        nodes=tuple(nodes),
        first_seen_at=at - count * STEP_SECONDS,
        last_seen_at=at - 12,
        steps=steps(count, at - 12),
        reshard_cycles_total=count,
        reshard_marker="resume_kv_cache",
        phases=phases(count, at - 12),
        coverage=tuple(msgspec.structs.replace(one, last_seen_at=at - 12 if one.source else None) for one in COVERAGE),
        config=CONFIG,
    )


def rule(alert: str, severity: wire.Severity, above: float) -> wire.Rule:
    when = msgspec.Raw(msgspec.json.encode({"kind": "threshold", "metric": "gpu_used_ratio", "above": above}))
    return wire.Rule(
        alert=alert, severity=severity, scope="gpu", for_seconds=30, keep_firing_for_seconds=120, when=(when,)
    )


RULES = (rule("gpu_memory_high", "warning", 0.85), rule("gpu_memory_high", "critical", 0.95))
SERVER = wire.ServerInfo(version="1.0.0", started_at=1_764_000_000.0)


def healthy(at: float, nodes: int = 1, gpus: int = 8) -> wire.Snapshot:
    """Everything is well: `nodes` nodes of one run."""
    views = tuple(node(number, at, gpus=gpus, level=0.45) for number in range(1, nodes + 1))
    runs = (run(at, (view.node for view in views)),)
    return wire.Snapshot(at=at, server=SERVER, nodes=views, runs=runs, rules=RULES)


_ADVICE = {
    "en": (
        "Give the rollout engine less: lower actor_rollout_ref.rollout.gpu_memory_utilization (by 0.1, say).",
        "Let the engine give its memory back between rollouts: `actor_rollout_ref.rollout.free_cache_engine=True`.",
        "Shorten what is generated: lower data.max_response_length.",
    ),
    "zh": (
        "减少 rollout 引擎的显存：调低 actor_rollout_ref.rollout.gpu_memory_utilization（例如降 0.1）。",
        "让引擎在两次 rollout 之间归还显存：`actor_rollout_ref.rollout.free_cache_engine=True`。",
        "缩短生成长度：调低 data.max_response_length。",
    ),
}


def alert(
    at: float, *, key: str, severity: wire.Severity, labels: dict[str, str], english: str, chinese: str
) -> wire.Alert:
    """A firing alert on GPU memory; the others of a scene are replacements of its fields."""
    return wire.Alert(
        id=key,
        alert="gpu_memory_high",
        severity=severity,
        state="firing",
        labels=labels,
        started_at=at - 320,
        fired_at=at - 290,
        value=0.972,
        limit=0.95,
        unit="ratio",
        texts={
            "en": wire.AlertText(
                summary=english,
                description="Device memory has been above 95 % for 30 s in total, over the peaks of the training "
                "steps. What is left may not be enough for one longer batch or a wake-up of the rollout engine.",
                advice=_ADVICE["en"],
            ),
            "zh": wire.AlertText(
                summary=chinese,
                description="显存占用在各训练步的峰值上累计超过 95 % 已达 30 秒。"
                "剩余显存可能不足以应付一个更长的批次、rollout 引擎的唤醒或一次检查点保存。",
                advice=_ADVICE["zh"],
            ),
        },
    )


def _tight(at: float, key: str, node: str, gpu: str) -> wire.Alert:
    tight = alert(
        at,
        key=key,
        severity="warning",
        labels={"node": node, "gpu": gpu, "run": RUN},
        english=f"GPU {gpu} of {node}: 88 % of its memory is in use (69.6 GiB of 79.1 GiB)",
        chinese=f"{node} 的 GPU {gpu}：显存已用 88 %（69.6 GiB / 79.1 GiB）",
    )
    return msgspec.structs.replace(tight, value=0.88, limit=0.85)


CAUSES = (
    wire.Cause(
        cause="host_offload",
        score=0.7,
        evidence=(
            wire.Evidence(
                key="part_holds",
                texts={"en": "ray::WorkerDict holds 640.0 GiB of 1024.0 GiB", "zh": "ray::WorkerDict 占用 640.0 GiB"},
            ),
        ),
        texts={"en": "Parameters and optimizer states offloaded to the host", "zh": "卸载到主机的参数与优化器状态"},
    ),
    wire.Cause(cause="driver_process", score=0.2, texts={"en": "The driver process", "zh": "驱动进程"}),
)
REMEDIES = (
    wire.Remedy(
        remedy="optimizer_back_to_card",
        cause="host_offload",
        key="actor_rollout_ref.actor.fsdp_config.optimizer_offload",
        value_from=True,
        value_to=False,
        override="actor_rollout_ref.actor.fsdp_config.optimizer_offload=False",
        texts={"en": "Keep the optimizer's states on the card.", "zh": "让优化器状态留在卡上。"},
        price={"en": "takes memory of the cards", "zh": "占用显存"},
        source="verl configuration",
    ),
    wire.Remedy(
        remedy="more_container_memory",
        cause="host_offload",
        texts={"en": "Raise the container's memory limit.", "zh": "提高容器的内存上限。"},
        price={"en": "memory that others lack", "zh": "其他任务的内存"},
    ),
)


def _acts(at: float) -> tuple[wire.Act, ...]:
    folder = "/srv/acts/20261130T095326Z-gpu_memory_high-9f3c0a1b2c3d4e5f"
    return (
        wire.Act(
            act="memory_snapshot",
            at=at - 190,
            node="gpu-02",
            ok=True,
            detail="process 25520: 94 s of history, 38.4 MiB",
            path=f"{folder}/memory_snapshot-25520",
        ),
        wire.Act(
            act="hook",
            at=at - 290,
            node="gpu-02",
            ok=False,
            detail="not allowed on this node; start its agent with --allow-acts hook",
        ),
    )


def _alerts(at: float) -> tuple[wire.Alert, ...]:
    full = alert(
        at,
        key="a1",
        severity="critical",
        labels={"node": "gpu-02", "gpu": "3", "run": RUN},
        english="GPU 3 of gpu-02: 97 % of its memory is in use (76.8 GiB of 79.1 GiB)",
        chinese="gpu-02 的 GPU 3：显存已用 97 %（76.8 GiB / 79.1 GiB）",
    )
    host = alert(
        at,
        key="a2",
        severity="warning",
        labels={"node": "gpu-04"},
        english="gpu-04: 90 % of the container's host memory is in use (921.6 GiB of 1024.0 GiB)",
        chinese="gpu-04：主机内存（容器）已用 90 %（921.6 GiB / 1024.0 GiB）",
    )
    slow = alert(
        at,
        key="a3",
        severity="warning",
        labels={"run": RUN},
        english=f"Rollout of step 58 took 1 min 36 s, usually 36 s (run {RUN})",
        chinese=f"第 58 步的 rollout 用时 1 分钟 36 秒，通常为 36 秒（任务 {RUN}）",
    )
    replace = msgspec.structs.replace
    ended = {"state": "resolved", "started_at": at - 5000, "fired_at": at - 4970, "ended_at": at - 4100}
    slow = replace(slow, alert="rollout_time_jump", value=96.0, limit=108.0, unit="seconds", started_at=at - 240)
    return (
        replace(
            host,
            alert="host_memory_high",
            value=0.9,
            limit=0.88,
            started_at=at - 900,
            fired_at=at - 870,
            causes=CAUSES,
            remedies=REMEDIES,
        ),
        replace(full, acts=_acts(at)),
        slow,
        _tight(at, "a4", "gpu-02", "5"),
        replace(_tight(at, "a5", "gpu-01", "6"), state="pending", fired_at=None, value=0.86),
        replace(_tight(at, "a6", "gpu-05", "1"), stale=True, started_at=at - 4000, fired_at=at - 3970),
        replace(_tight(at, "a7", "gpu-01", "0"), reason="recovered", **ended),
        replace(slow, id="a8", reason="run ended", **ended),
    )


def _with_sample(view: wire.Node, statuses: dict[str, wire.GpuStatus]) -> wire.Node:
    assert view.sample is not None
    gpus = tuple(
        wire.GpuSample(gpu=sample.gpu, status=statuses[sample.gpu]) if sample.gpu in statuses else sample
        for sample in view.sample.gpus
    )
    return msgspec.structs.replace(view, sample=msgspec.structs.replace(view.sample, gpus=gpus))


LEVELS = {"gpu-02": 0.77}


def troubled(at: float) -> wire.Snapshot:
    """Six nodes with every trouble there is: alerts of each kind, a silent node, a lost GPU, one without data."""
    views = [node(number, at, level=LEVELS.get(f"gpu-{number:02d}", 0.5)) for number in range(1, 7)]
    replace = msgspec.structs.replace
    views[2] = _with_sample(views[2], {"7": "lost", "2": "no_data"})
    broken = (
        wire.SourceFacts(name="nvml", state="hung", detail="GPU 2 has not answered for 40 s: see dmesg for Xid lines"),
        *SOURCES[1:2],
        wire.SourceFacts(
            name="ray", state="missing", detail="no session under /tmp/ray: give --ray DIR if it is elsewhere"
        ),
    )
    views[2] = replace(views[2], facts=replace(views[2].facts, sources=broken))
    views[4] = replace(views[4], state="silent", last_seen_at=at - 130)
    views[5] = replace(views[5], state="stopped", last_seen_at=at - 3700, run=None, gpu_runs=(None,) * 8)
    runs = (
        run(at, ("gpu-01", "gpu-02", "gpu-03")),
        replace(
            run(at, ("gpu-04", "gpu-05"), 22, "llama8b_ppo"),
            reshard_marker=None,
            reshard_cycles_total=0,
            phases=(),
            coverage=(),
            config={},
        ),
    )
    views[3] = replace(views[3], run="llama8b_ppo", gpu_runs=("llama8b_ppo",) * 8)
    views[4] = replace(views[4], run="llama8b_ppo", gpu_runs=("llama8b_ppo",) * 8)
    return wire.Snapshot(at=at, server=SERVER, nodes=tuple(views), runs=runs, alerts=_alerts(at), rules=RULES)


def crowded(at: float, nodes: int) -> wire.Snapshot:
    """A large fleet in which a few GPUs are in trouble."""
    views = tuple(
        node(number, at, level=0.35 + 0.03 * (number * 7 % 10), run=f"run-{number % 5}")
        for number in range(1, nodes + 1)
    )
    replace = msgspec.structs.replace
    listed = list(views)
    listed[5] = replace(listed[5], state="silent", last_seen_at=at - 75)
    listed[9] = _with_sample(listed[9], {"1": "lost"})
    trouble = [
        alert(
            at,
            key=f"c{number}",
            severity="critical" if number % 3 == 0 else "warning",
            labels={"node": f"gpu-{1 + number * 11 % nodes:02d}", "gpu": str(number % 8)},
            english=f"GPU {number % 8} of gpu-{1 + number * 11 % nodes:02d}: 97 % of its memory is in use",
            chinese=f"gpu-{1 + number * 11 % nodes:02d} 的 GPU {number % 8}：显存已用 97 %",
        )
        for number in range(5)
    ]
    return wire.Snapshot(at=at, server=SERVER, nodes=tuple(listed), alerts=tuple(trouble), rules=RULES)


def simulated(snapshot: wire.Snapshot) -> wire.Snapshot:
    """The same, said to be simulated."""
    nodes = tuple(msgspec.structs.replace(view, simulated=True) for view in snapshot.nodes)
    return msgspec.structs.replace(snapshot, nodes=nodes)
