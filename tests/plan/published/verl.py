"""verl and its forks, by their own settings."""

from collections.abc import Iterator

import msgspec
from tests.plan.published.build import shape
from tests.plan.published.row import Fit, Peak

from oomwatch.plan.memory.host import host_parts
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.verlsetup import GSM8K_TOKENS, setup_of
from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, REF, ROLLOUT, Config

GRPO: Config = {"algorithm.adv_estimator": "grpo", f"{ROLLOUT}.name": "vllm", f"{MODEL}.use_remove_padding": True}
OFFLOADED: Config = {f"{ACTOR}.fsdp_config.param_offload": True, f"{ACTOR}.fsdp_config.optimizer_offload": True}
TUNING = "volcengine/verl@b178a3cd examples/tuning"


def _engine(tensor: int, share: float, **more: bool | int | str) -> Config:
    return {f"{ROLLOUT}.tensor_model_parallel_size": tensor, f"{ROLLOUT}.gpu_memory_utilization": share} | {
        f"{ROLLOUT}.{key}": value for key, value in more.items()
    }


def _lengths(prompt: int, response: int) -> Config:
    return {"data.max_prompt_length": prompt, "data.max_response_length": response}


def _gpus(count: int) -> Config:
    per_node = min(count, 8)
    return {"trainer.n_gpus_per_node": per_node, "trainer.nnodes": count // per_node}


def _micro(size: int) -> Config:
    keys = (f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu")
    return dict.fromkeys((*keys, f"{REF}.log_prob_micro_batch_size_per_gpu"), size)


def _dynamic(tokens: int) -> Config:
    return {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": tokens}


def _awake(setup: Setup) -> Setup:
    """With vLLM in the trainer's process, whose pool torch counts even while it sleeps."""
    engine = setup.engine
    if engine is None:
        raise ValueError("no engine")
    return msgspec.structs.replace(setup, engine=msgspec.structs.replace(engine, sleeps=False))


def peaks() -> Iterator[Peak]:
    small = {
        **GRPO,
        **OFFLOADED,
        **_gpus(4),
        **_dynamic(2048),
        **_lengths(512, 256),
        **_engine(1, 0.25, enforce_eager=True),
    }
    small[f"{ACTOR}.fsdp_config.model_dtype"] = "bf16"
    for row, mean, measured in (("LS1", 300.0, 9.381), ("LS1b", 200.0, 9.3815)):
        yield Peak(
            row=row,
            source="0904wang/LightningSearch-RL@92ec0b0b phase5",
            settings="Qwen3-4B bf16 GRPO, FSDP4, offload, 2,048 tokens a GPU",
            measured_gib=measured,
            setup=setup_of(
                {**small, "data.train_batch_size": 4, f"{ACTOR}.ppo_mini_batch_size": 4, f"{ROLLOUT}.n": 2},
                shape("Qwen3-4B"),
                "0.8",
                mean_length_tokens=mean,
            ),
            capacity_gib=31.36,
        )
    ascend = {
        **GRPO,
        **OFFLOADED,
        **_gpus(8),
        **_dynamic(2048),
        **_lengths(2048, 2048),
        **_engine(2, 0.7),
        "data.train_batch_size": 32,
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.ppo_mini_batch_size": 16,
        f"{ACTOR}.ulysses_sequence_parallel_size": 2,
        f"{ACTOR}.entropy_from_logits_with_chunking": True,
        f"{ACTOR}.fsdp_config.use_no_sync_for_gradient_accumulation": True,
        f"{ROLLOUT}.n": 4,
    }
    yield Peak(
        row="AS1",
        source="verl-project/verl@1dda039b tests/special_npu/nightly_ci_ascend/run_gspo_qwen3_8b_fsdp2_npu.sh",
        settings="Qwen3-8B GSPO, FSDP2 on 8, gradients whole while they accumulate",
        measured_gib=47.87,
        setup=setup_of(ascend, shape("Qwen3-8B"), "0.9"),
        capacity_gib=60.96,
    )
    play = {**GRPO, **_gpus(8), **_dynamic(8000), **_lengths(512, 192), **_engine(1, 0.6, enforce_eager=True, n=2)}
    play |= {"data.train_batch_size": 256, f"{ACTOR}.ppo_mini_batch_size": 256, f"{ACTOR}.use_kl_loss": True}
    for row, reading, measured in (
        ("PV1", "allocated with pool", 52.804),
        ("PV1 reserved", "reserved with pool", 65.656),
    ):
        yield Peak(
            row=row,
            source="dingxianzhong/play-verl@7716a615 logs/verl_grpo_qwen2.5b_8gpu.log",
            settings="Qwen2.5-0.5B GRPO on 8 H100, vLLM in the process at 0.6",
            measured_gib=measured,
            reading=reading,  # type: ignore[arg-type]
            setup=_awake(setup_of(play, shape("Qwen2.5-0.5B"), "0.3")),
            capacity_gib=79.33,
        )
    coder = {**GRPO, **OFFLOADED, **_gpus(2), **_dynamic(65536), **_lengths(8192, 8192), **_engine(1, 0.45)}
    yield Peak(
        row="SM1",
        source="a public log (SWE-Master SETUP_RL.md)",
        settings="Qwen2.5-Coder-1.5B on 2 H100, 65,536 tokens",
        measured_gib=62.0,
        setup=setup_of(coder, shape("Qwen2.5-Coder-1.5B"), "0.5"),
        capacity_gib=79.18,
    )
    yield _host()


def _host() -> Peak:
    return Peak(
        row="DS1 host",
        source="verl docs/perf/dpsk.md",
        settings="DeepSeek-V3 TP8 PP12 EP8 on 96 H20, optimizer on the host: host memory of a node",
        measured_gib=1500 / 1.0737,
        parts=host_parts(_deepseek(12, 96, 1.0)),
    )


def _megatron(tensor: int, pipeline: int, expert: int, gpus: int, on_host: float) -> Config:
    own = f"{ACTOR}.megatron"
    return {
        **GRPO,
        **_gpus(gpus),
        f"{ACTOR}.strategy": "megatron",
        f"{own}.tensor_model_parallel_size": tensor,
        f"{own}.pipeline_model_parallel_size": pipeline,
        f"{own}.expert_model_parallel_size": expert,
        f"{own}.expert_tensor_parallel_size": 1,
        f"{own}.param_offload": True,
        f"{own}.grad_offload": True,
        f"{own}.optimizer_offload": True,
        f"{own}.override_transformer_config.recompute_granularity": "full",
        f"{ACTOR}.optim.override_optimizer_config.optimizer_offload_fraction": on_host,
    }


def _deepseek(pipeline: int, gpus: int, on_host: float) -> Setup:
    config = {**_megatron(8, pipeline, 8, gpus, on_host), **_lengths(2048, 4096), **_micro(1), **_engine(32, 0.6)}
    return setup_of(config, shape("DeepSeek-V3"), "0.5", mean_length_tokens=2400)


def _run(config: Config, model: str, mean: float | None = None, version: str = "0.4") -> Setup:
    return setup_of(config, shape(model), version, mean_length_tokens=mean)


def _tuning() -> Iterator[Fit]:
    """verl's own tuned scripts, on GSM8K."""
    tuned = {**GRPO, **OFFLOADED, f"{REF}.fsdp_config.param_offload": True, f"{ACTOR}.use_kl_loss": True}
    tuned |= {f"{ROLLOUT}.n": 5}
    lora = {**tuned, **_gpus(1), **_lengths(512, 1024), f"{MODEL}.lora_rank": 32}
    long, short = _lengths(1024, 1024), _lengths(512, 512)
    two = {**tuned, **_gpus(2), **_micro(16), **long, **_engine(2, 0.6)}
    four = {**tuned, **_gpus(4), **_micro(16), **long, **_engine(4, 0.5)}
    many = {**tuned, **_gpus(32), **_dynamic(24000), **short, **_engine(16, 0.6)}
    rows: tuple[tuple[str, str, str, float, Config, str], ...] = (
        ("T7", "7b", "on 2 H800, 16 a GPU", 79.18, two, "Qwen2-7B"),
        ("T14", "14b", "on 4 H800, 16 a GPU", 79.18, four, "Qwen2.5-Coder-14B"),
        ("T72a", "70b", "on 32 H20, 24,000 tokens", 95.1, many, "Qwen2-72B"),
        ("LR3", "3b", "LoRA on 1 H100, 62 a GPU", 79.18, {**lora, **_micro(62), **_engine(1, 0.1)}, "Qwen2.5-3B"),
        ("LR7", "7b", "LoRA on 1 H100, 100 a GPU", 79.18, {**lora, **_micro(100), **_engine(1, 0.2)}, "Qwen2.5-7B"),
    )
    for row, folder, settings, capacity, config, model in rows:
        yield Fit(
            row=row,
            source=f"{TUNING}/{folder}",
            settings=f"{model} {settings}",
            ran=True,
            setup=_run(config, model, GSM8K_TOKENS),
            capacity_gib=capacity,
        )


def _megatron_ends() -> Iterator[Fit]:
    page = "verl docs/perf/dpsk.md"
    ref = {f"{ACTOR}.use_kl_loss": True, f"{REF}.megatron.param_offload": True}
    eight = {**_megatron(8, 1, 1, 8, 0.0), **_micro(1), **_lengths(1024, 2048), **_engine(8, 0.6), **ref}
    yield Fit(
        row="I1",
        source="volcengine/verl#3124",
        settings="Qwen2.5-32B Megatron TP8 on 8 H20",
        ran=False,
        setup=_run(eight, "Qwen2.5-32B"),
        capacity_gib=95.1,
    )
    for gpus, pipeline, on_host in ((96, 12, 1.0), (128, 16, 0.5), (256, 16, 0.0), (512, 16, 0.0)):
        settings = f"DeepSeek-V3 TP8 PP{pipeline} EP8 on {gpus} H20"
        setup = _deepseek(pipeline, gpus, on_host)
        yield Fit(row=f"DS2 {gpus}", source=page, settings=settings, ran=True, setup=setup, capacity_gib=95.1)
    for gpus in (8, 16, 32):
        sparse = {**_megatron(1, 1, 8, gpus, 1.0), **_dynamic(10240), **_lengths(2048, 8192), **_engine(4, 0.6)}
        settings = f"Qwen3-30B-A3B EP8 on {gpus} H20"
        setup = _run(sparse, "Qwen3-30B-A3B")
        yield Fit(row=f"DS4 {gpus}", source=page, settings=settings, ran=True, setup=setup, capacity_gib=95.1)


def ends() -> Iterator[Fit]:
    yield from _tuning()
    yield from _megatron_ends()
    plain = {**GRPO, **_gpus(8), **_dynamic(24000), **_lengths(512, 512), **_engine(8, 0.6)}
    plain |= {f"{ROLLOUT}.n": 8, f"{ACTOR}.use_kl_loss": True, f"{MODEL}.use_remove_padding": False}  # not stated
    yield Fit(
        row="I3",
        source="volcengine/verl#855",
        settings="R1-Distill-14B on 8 H100, nothing offloaded, 24,000 tokens",
        ran=False,
        setup=_run(plain, "DeepSeek-R1-Distill-Qwen-14B", version="0.3"),  # the release of its month
        capacity_gib=79.18,
    )
    starter = {**_gpus(1), **_micro(4), **_lengths(512, 256), **_engine(1, 0.4, name="vllm")}
    starter |= {"algorithm.adv_estimator": "gae", f"{CRITIC}.ppo_micro_batch_size_per_gpu": 4}
    yield Fit(
        row="QS05",
        source="verl docs/start/quickstart.rst",
        settings="Qwen2.5-0.5B PPO on one card of 24 GB",
        ran=True,
        setup=_run(starter, "Qwen2.5-0.5B"),
        capacity_gib=23.55,
    )
    small = {**GRPO, **OFFLOADED, **_gpus(4), **_dynamic(2048), **_lengths(1024, 256), **_engine(1, 0.25)}
    yield Fit(
        row="LS5",
        source="0904wang/LightningSearch-RL@92ec0b0b phase5m",
        settings="Qwen3-4B, engine at 0.25 of 31 GiB, 1,280 tokens",
        ran=False,
        setup=_run(small, "Qwen3-4B"),
        capacity_gib=31.36,
    )
