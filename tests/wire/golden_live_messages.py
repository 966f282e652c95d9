"""One message of every type between server and browser, with every field set.

To add one: add it to LIVE_MESSAGES and run `python -m tests.wire.golden_live_messages`, which writes what does not
exist yet. The page's own reader is held to the same files by tests/frontend/wire.test.js.
"""

from pathlib import Path

import msgspec
from tests.wire.golden_messages import FACTS, GIB, HOST, SAMPLE_WITH_PROBE, STEP

from oomwatch import wire

FOLDER = Path(__file__).parent / "v1"
AT = 1764430000.0

TEXTS = {
    "en": wire.AlertText(
        summary="GPU 3 of gpu-07: 93 % of its memory is in use",
        description="Device memory has been above 85 % for 30 s in total.",
        advice=("Lower actor_rollout_ref.rollout.gpu_memory_utilization.", "Lower data.max_response_length."),
    ),
    "zh": wire.AlertText(
        summary="gpu-07 的 GPU 3：显存已用 93 %",
        description="显存占用累计超过 85 % 已达 30 秒。",
        advice=("调低 actor_rollout_ref.rollout.gpu_memory_utilization。", "调低 data.max_response_length。"),
    ),
}
KNOWN_FACTS = msgspec.structs.replace(FACTS, host=msgspec.structs.replace(HOST, addresses=("192.0.2.7",)))
SAMPLE = wire.Sample(
    seq=0,
    at=AT - 1,
    gpus=(
        wire.GpuSample(
            gpu="3",
            used_bytes=72 * GIB,
            utilization_ratio=0.97,
            power_watts=612.5,
            temperature_celsius=64.0,
            ecc_uncorrected_total=0,
            processes=(
                wire.GpuProcess(
                    pid=25520, used_bytes=70 * GIB, name="ray::WorkerDict", run="qwen7b_grpo", rank=3, role="actor"
                ),
            ),
        ),
        wire.GpuSample(gpu="3:1", status="no_data"),
    ),
    host=wire.HostSample(
        memory_used_bytes=700 * GIB,
        cgroup_used_bytes=410 * GIB,
        swap_used_bytes=0,
        shm_used_bytes=12 * GIB,
        memory_pressure_some_ratio=0.02,
        memory_pressure_full_ratio=0.01,
        oom_kill_total=1,
        processes=(wire.HostProcess(pid=4242, name="TaskRunner", rss_bytes=230 * GIB, run="qwen7b_grpo"),),
    ),
    torch=SAMPLE_WITH_PROBE.torch,
    engines=SAMPLE_WITH_PROBE.engines,
)
NODE = wire.Node(
    node="gpu-07",
    state="live",
    last_seen_at=AT - 0.5,
    agent_version="1.0.0",
    interval_seconds=1.0,
    facts=KNOWN_FACTS,
    run="qwen7b_grpo",
    gpu_runs=("qwen7b_grpo", None),
    simulated=True,
    skew_seconds=2.5,
    reading=wire.NodeTick(
        node="gpu-07",
        at=AT - 1,
        used_mib=(72 * 1024, None),
        utilization_percent=(97, None),
        status=("ok", "no_data"),
        torch_reserved_mib=(42 * 1024, None),
        host_used_mib=700 * 1024,
        cgroup_used_mib=410 * 1024,
    ),
)
NODE_AT_A_GLANCE = msgspec.structs.replace(
    NODE,
    facts=msgspec.structs.replace(KNOWN_FACTS, gpus=()),
    cards=tuple(
        wire.CardsAlike(
            gpus=(gpu.gpu,),
            name=gpu.name,
            total_bytes=gpu.total_bytes,
            reserved_bytes=gpu.reserved_bytes,
            mig=gpu.mig,
        )
        for gpu in FACTS.gpus
    ),
)
NODE_IN_FULL = msgspec.structs.replace(NODE, sample=SAMPLE, together=msgspec.structs.replace(SAMPLE, at=AT - 9))
RUN = wire.Run(
    run="qwen7b_grpo",
    nodes=("gpu-07",),
    first_seen_at=AT - 3600,
    last_seen_at=AT - 20,
    steps=(wire.StepPoint(at=AT - 20, step=STEP),),
    reshard_cycles_total=12,
    reshard_marker="resume_kv_cache",
    phases=(
        wire.PhaseSpan(start_at=AT - 94, end_at=AT - 64, phase="rollout", step=12, known_by="mark"),
        wire.PhaseSpan(start_at=AT - 64, end_at=AT - 20, phase="update_actor", step=12, known_by="step line"),
        wire.PhaseSpan(start_at=AT - 20, phase="rollout", known_by="mark"),
    ),
    coverage=(
        wire.Coverage(signal="step_line", source="driver.log", last_seen_at=AT - 20, count=12),
        wire.Coverage(
            signal="rollout_seconds",
            source="driver.log",
            last_seen_at=AT - 120,
            count=10,
            problem="missing_since_step",
            step=11,
            texts={"en": "missing since step 11", "zh": "自第 11 步起缺失"},
        ),
    ),
    config={
        "actor_rollout_ref.rollout.n": 12,
        "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
        "actor_rollout_ref.rollout.free_cache_engine": True,
        "actor_rollout_ref.rollout.name": "vllm",
    },
    simulated=True,
)
ALERT = wire.Alert(
    id="0f3e5a7c1f0e",
    alert="gpu_memory_high",
    severity="warning",
    state="resolved",
    labels={"node": "gpu-07", "gpu": "3", "run": "qwen7b_grpo"},
    started_at=AT - 300,
    texts=TEXTS,
    fired_at=AT - 270,
    ended_at=AT - 10,
    value=0.93,
    limit=0.85,
    unit="ratio",
    facts={"used_bytes": 72 * GIB, "usable_bytes": 79 * GIB, "phase": "rollout"},
    stale=True,
    simulated=True,
    reason="recovered",
)
SILENCE = wire.Silence(
    id="s-4f1c2a9e07b3",
    matchers=(wire.Matcher(label="node", value="gpu-07"), wire.Matcher(label="alert", op="=~", value="gpu_.*")),
    starts_at=AT - 60,
    ends_at=AT + 7200,
    created_by="wei",
    created_at=AT - 61,
    note="new cards",
)
CHANNEL = wire.ChannelState(
    name="team",
    kind="slack",
    health="failing",
    waiting=2,
    delivered_total=7,
    failed_total=1,
    retries_total=3,
    dropped_total=4,
    last_success_at=AT - 500,
    last_error_at=AT - 5,
    last_error="https://hooks.example answered 503",
)
RULE = wire.Rule(
    alert="gpu_memory_high",
    severity="warning",
    scope="gpu",
    for_seconds=30.0,
    keep_firing_for_seconds=120.0,
    when=(msgspec.Raw(b'{"kind":"threshold","metric":"gpu_used_ratio","above":0.85}'),),
    texts=TEXTS,
)
SERVER = wire.ServerInfo(version="1.0.0", started_at=AT - 86400, rules_error="alerts.yaml:3:5: unknown metric")

LIVE_MESSAGES: dict[str, wire.LiveMessage] = {
    "live-snapshot": wire.Snapshot(
        at=AT, server=SERVER, nodes=(NODE_AT_A_GLANCE,), runs=(RUN,), alerts=(ALERT,), rules=(RULE,)
    ),
    "live-snapshot-empty": wire.Snapshot(at=AT, server=wire.ServerInfo(version="1.0.0", started_at=AT)),
    "live-tick": wire.Tick(
        at=AT + 1,
        nodes=(
            wire.NodeTick(
                node="gpu-07",
                at=AT + 0.8,
                used_mib=(73728, None),
                utilization_percent=(97, None),
                status=("ok", "lost"),
                torch_reserved_mib=(62464, None),
                host_used_mib=716800,
                cgroup_used_mib=419840,
            ),
        ),
    ),
    "live-node": wire.NodeChanged(node=NODE_AT_A_GLANCE),
    "live-node-in-full": wire.NodeChanged(node=NODE_IN_FULL),
    "live-run": wire.RunChanged(run=RUN),
    "live-alert": wire.AlertChanged(alert=ALERT),
    "live-alert-with-acts": wire.AlertChanged(
        alert=msgspec.structs.replace(
            ALERT,
            severity="critical",
            acts=(
                wire.Act(
                    act="memory_snapshot",
                    at=AT - 5,
                    node="gpu-07",
                    ok=True,
                    detail="process 25520: 91 s of history, 38.4 MiB",
                    path="/srv/acts/20261130T095326Z-gpu_memory_high-9f3c0a1b2c3d4e5f/memory_snapshot-25520",
                    seconds=93.5,
                ),
                wire.Act(
                    act="hook",
                    at=AT - 4,
                    node="gpu-07",
                    ok=False,
                    detail="not allowed on this node; start its agent ...",
                ),
            ),
        )
    ),
    "live-alert-with-outcome": wire.AlertChanged(
        alert=msgspec.structs.replace(
            ALERT,
            facts={**ALERT.facts, "incident": "20261130T095326Z-232cd580"},
            outcome=wire.Outcome(verdict="happened", at=AT, lead_seconds=95.5, lead_steps=2),
        )
    ),
    "live-alert-with-causes": wire.AlertChanged(
        alert=msgspec.structs.replace(
            ALERT,
            state="firing",
            lowered_from="critical",
            causes=(
                wire.Cause(
                    cause="log_prob_micro_batch",
                    score=0.71,
                    phase="old_log_prob",
                    evidence=(
                        wire.Evidence(
                            key="log_prob_batch",
                            facts={"micro_batch": 8},
                            texts={"en": "8 sequences a pass", "zh": "每次计算 8 条序列"},
                        ),
                    ),
                    texts={"en": "The micro batch of the log-prob pass", "zh": "log-prob 计算的 micro batch"},
                ),
                wire.Cause(cause="leak", score=0.2, texts={"en": "A leak", "zh": "泄漏"}),
            ),
            remedies=(
                wire.Remedy(
                    remedy="smaller_log_prob_batch",
                    cause="log_prob_micro_batch",
                    key="actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
                    value_from=8,
                    value_to=4,
                    override="actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4",
                    frees_bytes=9 * GIB,
                    needed_bytes=7 * GIB,
                    texts={"en": "Fewer sequences in one pass.", "zh": "减少单次计算的序列数。"},
                    price={"en": "a little slower", "zh": "略慢"},
                    source="article 2",
                ),
                wire.Remedy(
                    remedy="find_what_is_kept",
                    cause="leak",
                    texts={"en": "Look for tensors that are kept.", "zh": "查找被保留的张量。"},
                    price={"en": "a look into the code", "zh": "需要查看代码"},
                ),
            ),
        )
    ),
    "live-alert-muted-and-acknowledged": wire.AlertChanged(
        alert=msgspec.structs.replace(
            ALERT,
            state="firing",
            muted=(
                wire.Mute(kind="silence", by=SILENCE.id, until=SILENCE.ends_at, note="new cards"),
                wire.Mute(kind="inhibited", by="9f3c0a1b2c3d", note="gpu_memory_high"),
            ),
            acknowledged=wire.Acknowledgement(by="wei", at=AT - 30, note="looking at it"),
        )
    ),
    "live-silences": wire.SilencesChanged(silences=(SILENCE,)),
    "live-channels": wire.ChannelsChanged(channels=(CHANNEL,)),
    "live-torch": wire.TorchPoint(
        at=AT + 2,
        node="gpu-07",
        run="qwen7b_grpo",
        memory=wire.TorchMemory(
            reserved_bytes=61 * GIB,
            allocated_bytes=48 * GIB,
            device_used_bytes=72 * GIB,
            device_total_bytes=79 * GIB,
            at_point="After resume kv_cache",
            phase="rollout",
            step=12,
            gpu="3",
        ),
    ),
    "live-rules": wire.RulesChanged(server=SERVER, rules=(RULE,)),
    "live-forgotten": wire.Forgotten(nodes=("gpu-07",), runs=("qwen7b_grpo",)),
}


def main() -> None:
    for name, message in LIVE_MESSAGES.items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            path.write_bytes(msgspec.json.format(wire.encode(message), indent=2) + b"\n")
            print(path.name)


if __name__ == "__main__":
    main()
