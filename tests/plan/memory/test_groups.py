"""How the GPUs of actor and critic are grouped in the estimate: each by its own settings."""

import random

import pytest

from oomwatch import wire
from oomwatch.plan.cards import card_named
from oomwatch.plan.memory import Estimate, PhaseEstimate, estimate_of
from oomwatch.plan.models import shape_named

ACTOR, CRITIC, MODEL, ROLLOUT = (
    "actor_rollout_ref.actor",
    "critic",
    "actor_rollout_ref.model",
    "actor_rollout_ref.rollout",
)
MEGATRON: dict[str, wire.ConfigValue] = {
    "trainer.nnodes": 1, "trainer.n_gpus_per_node": 8, f"{ACTOR}.strategy": "megatron", f"{ROLLOUT}.name": "vllm",
    "data.train_batch_size": 256, "data.max_prompt_length": 1024, "data.max_response_length": 1024, f"{ROLLOUT}.n": 1,
    f"{ACTOR}.ppo_mini_batch_size": 64, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 2,
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 2, "critic.ppo_micro_batch_size_per_gpu": 2,
    "algorithm.adv_estimator": "gae",
}  # fmt: skip
FSDP = {key: value for key, value in MEGATRON.items() if not key.endswith("strategy")}


def estimate(config: dict[str, wire.ConfigValue], version: str = "0.7", model: str = "Qwen2.5-7B") -> Estimate:
    shape, card = shape_named(model), card_named("H200")
    assert shape is not None
    assert card is not None
    return estimate_of(config, shape, card, version=version)


def part(estimated: Estimate, phase: str, name: str) -> int:
    found = estimated.phase(phase)
    assert found is not None
    return sum(one.bytes for one in found.parts if one.name == name)


@pytest.mark.parametrize("key", ["tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"])
def test_the_critic_is_divided_by_its_own_settings(key: str) -> None:
    before, after = (estimate({**MEGATRON, f"{ACTOR}.megatron.{key}": size}) for size in (1, 2))
    for name in ("weights", "optimizer", "gradients", "activations"):
        assert part(after, "update_critic", name) == part(before, "update_critic", name)
    assert part(before, "update_critic", "optimizer") == pytest.approx(12 / 8 * 7.07e9, rel=0.01)


def test_those_that_share_a_sequence_share_the_optimizer_too() -> None:
    before, after = (estimate({**MEGATRON, f"{ACTOR}.megatron.context_parallel_size": size}) for size in (1, 2))
    assert part(after, "update_actor", "optimizer") == part(before, "update_actor", "optimizer")
    assert part(after, "update_actor", "activations") * 2 == pytest.approx(part(before, "update_actor", "activations"))


def test_the_critics_own_sequence_parallelism_divides_its_tokens() -> None:
    packed: dict[str, wire.ConfigValue] = {**FSDP, f"{MODEL}.use_remove_padding": True}
    packed["critic.model.use_remove_padding"] = True
    both, critics = f"{ACTOR}.ulysses_sequence_parallel_size", "critic.ulysses_sequence_parallel_size"
    before, of_actor, of_critic = (estimate({**packed, **more}) for more in ({}, {both: 2, critics: 1}, {critics: 2}))
    assert part(of_actor, "update_critic", "boundaries") == part(before, "update_critic", "boundaries")
    assert part(of_critic, "update_critic", "boundaries") * 2 == part(before, "update_critic", "boundaries")


def test_each_strategy_reads_adapters_by_its_own_setting() -> None:
    fsdp, megatron = {f"{MODEL}.lora_rank": 16}, {f"{MODEL}.lora.rank": 16}
    plain = {name: part(estimate(of), "update_actor", "optimizer") for name, of in (("f", FSDP), ("m", MEGATRON))}
    assert part(estimate({**FSDP, **fsdp}), "update_actor", "optimizer") < plain["f"] / 10
    assert part(estimate({**FSDP, **megatron}), "update_actor", "optimizer") == plain["f"]
    assert part(estimate({**MEGATRON, **megatron}), "update_actor", "optimizer") < plain["m"] / 10
    assert part(estimate({**MEGATRON, **fsdp}), "update_actor", "optimizer") == plain["m"]


def test_megatron_never_sends_activations_to_the_host() -> None:
    full: dict[str, wire.ConfigValue] = {
        **MEGATRON, f"{ACTOR}.megatron.override_transformer_config.recompute_granularity": "full",
    }  # fmt: skip
    asked = estimate({**full, f"{MODEL}.enable_activation_offload": True})
    assert part(asked, "update_actor", "boundaries") == part(estimate(full), "update_actor", "boundaries") > 0


def _drawn(pick: random.Random) -> dict[str, wire.ConfigValue]:
    """A configuration that could be anybody's."""
    config: dict[str, wire.ConfigValue] = {
        **(MEGATRON if pick.random() < 0.4 else FSDP),
        "data.max_response_length": pick.choice([512, 4096, 16384]), f"{ROLLOUT}.n": pick.choice([1, 8]),
        "trainer.nnodes": pick.choice([1, 4]), f"{ROLLOUT}.name": pick.choice(["vllm", "sglang"]),
        f"{ROLLOUT}.gpu_memory_utilization": pick.choice([0.4, 0.6, 0.8]),
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": pick.choice([2, 8]), f"{ACTOR}.entropy_coeff": pick.choice([0, 0.01]),
        f"{MODEL}.use_remove_padding": pick.random() < 0.5, f"{ACTOR}.use_kl_loss": pick.random() < 0.5,
        "algorithm.adv_estimator": pick.choice(["gae", "grpo"]),
    }  # fmt: skip
    if pick.random() < 0.4:
        config |= {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": pick.choice([4096, 32768])}
    return config


# A change, and in which phases it can never take more.
TRAINED = ("old_log_prob", "ref", "values", "update_critic", "update_actor")
NEVER_MORE: tuple[tuple[str, wire.ConfigValue, tuple[str, ...]], ...] = (
    ("trainer.nnodes", 8, (*TRAINED, "update_weights")),
    (f"{ACTOR}.ppo_micro_batch_size_per_gpu", 1, (*TRAINED, "rollout", "update_weights")),
    ("data.max_response_length", 256, TRAINED),
    (f"{ACTOR}.fsdp_config.param_offload", True, TRAINED),
    (f"{ACTOR}.fsdp_config.optimizer_offload", True, TRAINED),
    (f"{ACTOR}.megatron.optimizer_offload", True, TRAINED),
    (f"{ROLLOUT}.gpu_memory_utilization", 0.3, (*TRAINED, "rollout", "update_weights")),
    (f"{ACTOR}.ulysses_sequence_parallel_size", 4, TRAINED),
    (f"{ACTOR}.megatron.tensor_model_parallel_size", 4, TRAINED),
    (f"{ACTOR}.megatron.context_parallel_size", 2, TRAINED),
)


def _sane(phase: PhaseEstimate) -> bool:
    parts = sum(one.bytes for one in phase.parts) == phase.expected_bytes
    wide = 0.799 * phase.expected_bytes <= phase.low_bytes and phase.high_bytes <= 1.201 * phase.expected_bytes
    return parts and wide and 0 < phase.low_bytes <= phase.expected_bytes <= phase.high_bytes


@pytest.mark.parametrize("seed", range(20))
def test_what_should_save_memory_never_takes_more(seed: int) -> None:
    pick = random.Random(seed)
    config, version = _drawn(pick), pick.choice(["0.4", "0.6", "0.7", "0.8", "0.9"])
    model = pick.choice(["Qwen2.5-7B", "Qwen3-30B-A3B", "Llama-3.1-70B", "Gemma-2-9B", "DeepSeek-V3"])
    before = estimate(config, version, model)
    assert all(_sane(phase) for phase in before.phases)
    for key, value, phases in NEVER_MORE:
        if (".megatron." in key) != (f"{ACTOR}.strategy" in config) and (
            "megatron" in key or "fsdp" in key or "ulysses" in key
        ):
            continue
        after = estimate({**config, key: value}, version, model)
        for name in phases:
            one, other = before.phase(name), after.phase(name)
            if one is not None and other is not None:
                assert other.expected_bytes <= one.expected_bytes + 2**20, (key, name)
