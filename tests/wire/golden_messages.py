"""One message of every type between agent and server, with every field set."""

import msgspec

from oomwatch import wire

GIB = 2**30
RUN = "demo/qwen7b_grpo"
GPU = wire.GpuFacts(
    gpu="3",
    uuid="GPU-5a7c1f0e",
    name="NVIDIA H100 80GB HBM3",
    total_bytes=85520809984,
    reserved_bytes=629145600,
    pci_bus_id="00000000:3B:00.0",
    power_limit_watts=700.0,
    driver_version="570.86.15",
)
MIG = wire.GpuFacts(gpu="3:1", uuid="MIG-0f3e", name="NVIDIA H100 MIG 3g.40gb", total_bytes=40 * GIB, mig=True)
HOST = wire.HostFacts(
    memory_total_bytes=1024 * GIB,
    memory_limit_bytes=512 * GIB,
    memory_limit_source="cgroup v2",
    swap_total_bytes=8 * GIB,
    shm_total_bytes=64 * GIB,
    cpu_count=192,
    hostname="gpu-07",
    kernel="6.8.0",
)
FACTS = wire.NodeFacts(
    gpus=(GPU, MIG),
    host=HOST,
    sources=(
        wire.SourceFacts(name="nvml", state="ok", detail="2 GPUs"),
        wire.SourceFacts(name="ray", state="waiting", detail="no session yet"),
    ),
)
ORIGIN = wire.Origin(source="worker.err", line=42, pid=25520, actor="WorkerDict", ip="192.0.2.2", rank=0)
STEP = wire.Step(
    step=12,
    step_seconds=94.05,
    rollout_seconds=29.85,
    reshard_seconds=3.2,
    phase_seconds={"rollout": 29.85, "update_actor": 44.1},
    torch_reserved_peak_bytes=44 * GIB,
    torch_allocated_peak_bytes=37 * GIB,
    host_used_bytes=414 * GIB,
    response_length_mean_tokens=615.8,
    response_length_max_tokens=1601.0,
    response_clip_ratio=0.01,
    rollout_ms_per_token=0.067,
    tokens_total=666555.0,
)
BODIES: dict[str, wire.EventBody] = {
    "step": STEP,
    "step-validation": wire.Step(step=0, validation_only=True),
    "torch_memory": wire.TorchMemory(
        reserved_bytes=42 * GIB,
        allocated_bytes=35 * GIB,
        device_used_bytes=50 * GIB,
        device_total_bytes=79 * GIB,
        at_point="After resume kv_cache",
        phase="update_weights",
        step=12,
        gpu="3",
    ),
    "torch_memory-ends-phase": wire.TorchMemory(
        reserved_bytes=5 * GIB, at_point="Before load_fsdp_model_to_gpu", ends_phase="rollout"
    ),
    "torch_memory-asleep": wire.TorchMemory(
        reserved_bytes=5 * GIB,
        device_used_bytes=9 * GIB,
        at_point="Before resume weights",
        phase="update_weights",
        engine_asleep=True,
    ),
    "reshard": wire.Reshard(marker="resume_kv_cache", seconds=1.5),
    "engine_sleep": wire.EngineSleep(freed_bytes=58 * GIB, still_used_bytes=7 * GIB, seconds=1.5, gpu="3"),
    "engine_wake": wire.EngineWake(seconds=0.51, tags=("weights",), gpu="3"),
    "engine_memory": wire.EngineMemory(kv_available_bytes=-GIB, kv_used_ratio=0.91, gpu="3"),
    "device_oom": wire.DeviceOom(
        error="torch.OutOfMemoryError",
        tried_bytes=2 * GIB,
        total_bytes=79 * GIB,
        free_bytes=GIB,
        process_used_bytes=78 * GIB,
        allocated_bytes=71 * GIB,
        reserved_unallocated_bytes=5 * GIB,
        local_index=0,
        gpu="3",
        phase="update_weights",
    ),
    "host_oom": wire.HostOom(
        reporter="kernel", process="ray::TaskRunner", pid=7, used_bytes=500 * GIB, limit_bytes=512 * GIB, kills=2
    ),
    "disk_full": wire.DiskFull(reporter="ray", used_ratio=0.96),
    "shm_small": wire.ShmSmall(reporter="ray", available_bytes=64 * 2**20, wanted_bytes=4 * GIB),
    "nccl_error": wire.NcclError(error="timeout", gpu="3"),
    "config": wire.Config(
        values={
            "actor_rollout_ref.rollout.n": 12,
            "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
            "actor_rollout_ref.rollout.free_cache_engine": True,
            "actor_rollout_ref.rollout.name": "vllm",
        },
        framework="verl",
        version="0.9.1",
    ),
    "probe": wire.Probe(door="verl.plugins", torch_version="2.13.0", world_size=8, rank=3, role="actor", gpus=("3",)),
    "gpu_lost": wire.GpuLost(xid=79, pci_bus_id="0000:3b:00", gpu="3"),
    "act_done": wire.ActDone(
        id="9f3c0a1b2c3d4e5f",
        act="memory_snapshot",
        ok=True,
        detail="process 25520: 91 s of history, 38.4 MiB",
        path="/srv/acts/20261130T095326Z-memory_forecast-9f3c0a1b2c3d4e5f/memory_snapshot-25520",
        seconds=93.5,
    ),
    "run_named": wire.RunNamed(provisional="session_2026-11-29_09-42-00_123456_395 job 01000000"),
}
SAMPLE = wire.Sample(
    seq=17,
    at=1796000000.25,
    gpus=(
        wire.GpuSample(
            gpu="3",
            used_bytes=70 * GIB,
            utilization_ratio=0.98,
            power_watts=655.5,
            temperature_celsius=61.0,
            ecc_uncorrected_total=0,
            processes=(wire.GpuProcess(pid=25520, used_bytes=60 * GIB, name="ray::WorkerDict", run=RUN),),
        ),
        wire.GpuSample(gpu="3:1", status="no_data"),
    ),
    host=wire.HostSample(
        memory_used_bytes=400 * GIB,
        cgroup_used_bytes=380 * GIB,
        swap_used_bytes=0,
        shm_used_bytes=4 * GIB,
        memory_pressure_some_ratio=0.02,
        memory_pressure_full_ratio=0.0,
        oom_kill_total=0,
        processes=(wire.HostProcess(pid=9, name="raylet", rss_bytes=2 * GIB, run="demo/qwen7b_grpo"),),
    ),
)
SAMPLE_WITH_PROBE = wire.Sample(
    seq=18,
    at=1796000001.25,
    torch=(
        wire.TorchSample(
            pid=25520,
            gpu="3",
            run=RUN,
            rank=3,
            role="actor",
            reserved_bytes=42 * GIB,
            allocated_bytes=35 * GIB,
            active_bytes=36 * GIB,
            inactive_split_bytes=GIB,
            reserved_peak_bytes=44 * GIB,
            allocated_peak_bytes=40 * GIB,
            alloc_retries_total=2,
            ooms_total=0,
        ),
    ),
    engines=(
        wire.EngineSample(
            engine="vllm",
            address="127.0.0.1:8000",
            model="Qwen2.5-7B",
            run=RUN,
            kv_used_ratio=0.91,
            requests_running=240,
            requests_waiting=12,
            preemptions_total=3,
        ),
    ),
)
HELLO = wire.Hello(
    protocol=1,
    agent_version="0.1.0",
    node="gpu-07",
    session="c0ffee",
    sent_at=1796000000.0,
    interval_seconds=1.0,
    facts=FACTS,
    run="demo/qwen7b_grpo",
    simulated=True,
)
SAMPLE_WITH_RANKS = wire.Sample(
    seq=19,
    at=1796000002.25,
    gpus=(
        wire.GpuSample(
            gpu="3",
            processes=(
                wire.GpuProcess(pid=25520, name="ray::WorkerDict", run=RUN, rank=3, role="actor"),
                wire.GpuProcess(pid=25601, name="VLLM::EngineCore_DP0", run=RUN, role="rollout"),
            ),
        ),
    ),
)
SAMPLE_WITH_PEAKS = wire.Sample(
    seq=20,
    at=1796000003.25,
    gpus=(wire.GpuSample(gpu="3", used_bytes=50 * GIB, used_peak_bytes=78 * GIB, used_peak_seconds_ago=0.35),),
    host=wire.HostSample(
        memory_used_bytes=400 * GIB,
        cgroup_used_bytes=380 * GIB,
        memory_used_peak_bytes=480 * GIB,
        memory_used_peak_seconds_ago=0.2,
        cgroup_used_peak_bytes=460 * GIB,
        cgroup_used_peak_seconds_ago=0.1,
    ),
)
ACT = wire.ActRequest(
    id="9f3c0a1b2c3d4e5f",
    alert=wire.Alert(
        id="9f3c0a1b2c3d4e5f",
        alert="memory_forecast",
        severity="critical",
        state="firing",
        labels={"node": "gpu-07", "gpu": "3", "run": RUN},
        started_at=1796000000.0,
        fired_at=1796000005.0,
        texts={"en": wire.AlertText(summary="GPU 3 of gpu-07 will be full in 4 steps", description="")},
    ),
    acts=wire.ACTS,
    gpu="3",
    step_seconds=94.0,
)
MESSAGES: dict[str, wire.AgentMessage | wire.ServerMessage] = {
    "hello": HELLO,
    "hello-with-addresses": msgspec.structs.replace(
        HELLO,
        facts=wire.NodeFacts(host=msgspec.structs.replace(HOST, addresses=("192.0.2.7", "2001:db8::7"))),
    ),
    "hello-to-check": msgspec.structs.replace(HELLO, check=True),
    "sample": SAMPLE,
    "sample-with-probe": SAMPLE_WITH_PROBE,
    "sample-with-ranks": SAMPLE_WITH_RANKS,
    "sample-with-peaks": SAMPLE_WITH_PEAKS,
    **{
        f"event-{name}": wire.Event(
            seq=18, at=1796000001.5, body=body, run="demo/qwen7b_grpo", origin=ORIGIN, backlog=True
        )
        for name, body in BODIES.items()
    },
    "bye": wire.Bye(seq=19, at=1796000002.0, reason="stopped by SIGTERM"),
    "welcome": wire.Welcome(protocol=1, server_version="0.1.0", sent_at=1796000000.1, resume_after_seq=16),
    "refused": wire.Refused(reason=wire.RefusedReason.NODE_TAKEN, detail="another agent is called gpu-07", retry=True),
    "ack": wire.Ack(seq=17),
    "act": ACT,
}
