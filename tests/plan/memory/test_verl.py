"""verl's configuration as memory: what each setting does to which phase."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomwatch.plan.cards import card_named
from oomwatch.plan.memory import Estimate, PhaseEstimate, estimate_of
from oomwatch.plan.models import ModelShape, shape_named
from oomwatch.plan.settings import Config
from oomwatch.plan.verlkeys import keys_of

GIB = 2**30
ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
REF = "actor_rollout_ref.ref"
GRPO: Config = {
    "algorithm.adv_estimator": "grpo",
    "trainer.n_gpus_per_node": 8,
    "data.train_batch_size": 256,
    "data.max_prompt_length": 1024,
    "data.max_response_length": 3072,
    f"{ACTOR}.ppo_mini_batch_size": 64,
    f"{ACTOR}.use_dynamic_bsz": True,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 8192,
    f"{ACTOR}.use_kl_loss": True,
    f"{ROLLOUT}.name": "vllm",
    f"{ROLLOUT}.n": 8,
    f"{ROLLOUT}.tensor_model_parallel_size": 2,
    f"{ROLLOUT}.gpu_memory_utilization": 0.6,
    f"{MODEL}.use_remove_padding": True,
}


def estimate(config: Config, model: str = "Qwen2.5-7B", card: str = "H100", version: str = "0.8") -> Estimate:
    shape, found = shape_named(model), card_named(card)
    assert shape is not None
    assert found is not None
    return estimate_of(config, shape, found, version=version)


def phase(config: Config, name: str) -> PhaseEstimate:
    found = estimate(config).phase(name)
    assert found is not None
    return found


def part(config: Config, name: str, of: str) -> int:
    return next((part.bytes for part in phase(config, name).parts if part.name == of), 0)


def test_every_phase_of_a_step_is_estimated_in_its_order() -> None:
    names = [phase.phase for phase in estimate(GRPO).phases]
    assert names == ["rollout", "old_log_prob", "ref", "update_actor", "update_weights"]
    with_critic = estimate({**GRPO, "algorithm.adv_estimator": "gae"})
    assert [name.phase for name in with_critic.phases if name.phase not in names] == ["values", "update_critic"]


def test_the_static_parts_of_an_update_are_those_of_zero_to_the_byte() -> None:
    parameters = 7_615_616_512
    assert part(GRPO, "update_actor", "weights") == parameters * 4 // 8
    assert part(GRPO, "update_actor", "gradients") == parameters * 4 // 8
    assert part(GRPO, "update_actor", "optimizer") == parameters * 8 // 8


def test_offloaded_models_leave_the_rollout_alone_and_come_back_to_learn() -> None:
    away = {**GRPO, f"{ACTOR}.fsdp_config.param_offload": True, f"{ACTOR}.fsdp_config.optimizer_offload": True}
    assert part(GRPO, "rollout", "waiting") > 0
    assert phase(away, "rollout").expected_bytes < phase(GRPO, "rollout").expected_bytes
    assert phase(away, "update_actor").expected_bytes == phase(GRPO, "update_actor").expected_bytes
    assert estimate(away).host.expected_bytes - estimate(GRPO).host.expected_bytes == 12 * 7_615_616_512


def test_the_engine_takes_its_share_of_the_card_whatever_the_model() -> None:
    taken = sum(
        part.bytes for part in phase(GRPO, "rollout").parts if part.holder == "engine" and part.name != "graphs"
    )
    assert taken == pytest.approx(0.6 * 79.18 * GIB, rel=0.001)


def test_host_and_card_are_judged_by_one_rule() -> None:
    host = estimate(GRPO).host
    assert host.verdict_on(host.expected_bytes - 1) == "will_not_fit"
    assert host.verdict_on(host.high_bytes) == "tight"
    assert host.verdict_on(round(host.high_bytes / 0.96)) == "fits"


def test_an_engine_that_does_not_sleep_stays_while_the_model_learns() -> None:
    awake = {**GRPO, f"{ROLLOUT}.free_cache_engine": False}
    assert phase(awake, "update_actor").expected_bytes - phase(GRPO, "update_actor").expected_bytes > 40 * GIB
    assert (phase(GRPO, "update_actor").verdict, phase(awake, "update_actor").verdict) == ("fits", "tight")


def test_a_share_too_small_for_one_sequence_is_told_before_the_engine_refuses_it() -> None:
    assert phase({**GRPO, f"{ROLLOUT}.gpu_memory_utilization": 0.1}, "rollout").trouble == "no_cache"
    small = {**GRPO, f"{ROLLOUT}.gpu_memory_utilization": 0.17, "data.max_response_length": 120_000}
    assert phase(small, "rollout").trouble == "cache_too_small"
    assert phase(small, "rollout").verdict == "will_not_fit"


def test_longer_batches_need_more_where_tokens_count_and_nothing_else() -> None:
    longer = {**GRPO, f"{ACTOR}.ppo_max_token_len_per_gpu": 32768}
    assert part(longer, "old_log_prob", "logits") == 4 * part(GRPO, "old_log_prob", "logits")
    assert phase(longer, "rollout").expected_bytes == phase(GRPO, "rollout").expected_bytes


def test_padding_makes_every_sequence_as_long_as_the_longest() -> None:
    fixed = {**GRPO, f"{ACTOR}.use_dynamic_bsz": False, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 2}
    fixed[f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"] = 2
    packed = estimate_of(fixed, _shape(), 80 * GIB, mean_length_tokens=512).phase("update_actor")
    padded = estimate_of(
        {**fixed, f"{MODEL}.use_remove_padding": False}, _shape(), 80 * GIB, mean_length_tokens=512
    ).phase("update_actor")
    assert packed is not None
    assert padded is not None
    assert packed.expected_bytes < padded.expected_bytes


def test_ulysses_divides_what_a_sequence_takes() -> None:
    fixed = {**GRPO, f"{ACTOR}.use_dynamic_bsz": False, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 4}
    fixed[f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"] = 4
    shared = {**fixed, f"{ACTOR}.ulysses_sequence_parallel_size": 4}
    assert part(fixed, "old_log_prob", "logits") == 4 * part(shared, "old_log_prob", "logits")


PPO: Config = {**GRPO, "algorithm.adv_estimator": "gae", "critic.model.use_remove_padding": True}


def test_a_critic_shares_its_sequences_as_it_is_told_whatever_the_actor_does() -> None:
    fixed = {f"{ACTOR}.use_dynamic_bsz": False, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 16}
    fixed |= {f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 4, "critic.ppo_micro_batch_size_per_gpu": 16}
    alone = of_old({**PPO, **fixed})
    shared = of_old({**PPO, **fixed, "critic.ulysses_sequence_parallel_size": 4})
    assert size(alone, "update_critic", "boundaries") == 4 * size(shared, "update_critic", "boundaries") > 0
    assert size(alone, "values", "layer") == 4 * size(shared, "values", "layer") > 0
    assert size(alone, "update_actor", "boundaries") == size(shared, "update_actor", "boundaries") > 0
    actors = of_old({**PPO, **fixed, f"{ACTOR}.ulysses_sequence_parallel_size": 4})
    assert size(alone, "update_critic", "boundaries") == size(actors, "update_critic", "boundaries")


def test_a_megatron_critic_is_divided_by_its_own_groups() -> None:
    megatron = {**PPO, f"{ACTOR}.strategy": "megatron", "critic.strategy": "megatron"}
    own = {"tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 2}
    critic = estimate({**megatron, **{f"critic.megatron.{key}": value for key, value in own.items()}})
    actor = estimate({**megatron, **{f"{ACTOR}.megatron.{key}": value for key, value in own.items()}})
    each = 16 * 7_615_616_512 // 8  # of one process where nothing is divided but the optimizer's states
    for found, divided, whole in ((critic, "update_critic", "update_actor"), (actor, "update_actor", "update_critic")):
        assert size(found, whole, "optimizer") == pytest.approx(each * 12 / 16, rel=0.15)
        assert size(found, divided, "optimizer") == pytest.approx(each * 12 / 16, rel=0.15)
        assert size(found, divided, "weights") == pytest.approx(size(found, whole, "weights") / 8, rel=0.15)


def of_old(config: Config) -> Estimate:
    return estimate(config, version="0.7.1")


def size(found: Estimate, phase: str, name: str) -> int:
    one = found.phase(phase)
    assert one is not None
    return sum(part.bytes for part in one.parts if part.name == name)


def test_entropy_is_cut_into_chunks_where_the_release_reads_it() -> None:
    beside, engines = (
        f"{ACTOR}.entropy_from_logits_with_chunking",
        f"{ACTOR}.fsdp_config.entropy_from_logits_with_chunking",
    )
    read = {
        (version, key): size(estimate({**GRPO, key: True}, version=version), "old_log_prob", "logits")
        < size(estimate(GRPO, version=version), "old_log_prob", "logits")
        for version in ("0.7.1", "0.8.0", "0.9.1")
        for key in (beside, engines)
    }
    assert {at for at, is_read in read.items() if is_read} == {
        ("0.7.1", beside),
        ("0.8.0", engines),
        ("0.9.1", beside),
        ("0.9.1", engines),
    }


def test_an_estimate_is_an_interval_of_at_most_a_fifth_either_way() -> None:
    for found in estimate(GRPO).phases:
        assert 0.8 * found.expected_bytes <= found.low_bytes + 1 <= found.expected_bytes
        assert found.expected_bytes <= found.high_bytes <= 1.2 * found.expected_bytes + 1
        assert sum(part.bytes for part in found.parts) == found.expected_bytes


def test_a_data_set_that_is_known_is_not_taken_to_fill_its_caps() -> None:
    named = {**GRPO, "data.train_files": "/data/gsm8k/train.parquet", f"{ACTOR}.ppo_mini_batch_size": 8}
    longest = {**named, "data.train_files": "/data/other/train.parquet"}
    assert phase(named, "update_actor").expected_bytes < phase(longest, "update_actor").expected_bytes
    assert (estimate(named).assumed, estimate(longest).assumed) == (("known_lengths",), ("longest_batch",))
    default = {**named, "data.train_files": "~/data/rlhf/gsm8k/train.parquet"}
    assert estimate(default).assumed == ("longest_batch",)


def test_a_reward_model_on_the_same_cards_is_said_to_be_left_out() -> None:
    assert "no_reward_model" in estimate({**GRPO, "reward_model.enable": True}).assumed


def test_a_model_that_sees_is_said_to_be_counted_without_its_images() -> None:
    assert "no_images" in estimate(GRPO, model="Qwen2.5-VL-7B").assumed


def test_a_reference_rests_on_the_host_whatever_its_offload_says() -> None:
    assert part(GRPO, "ref", "weights") == 0
    assert part(GRPO, "ref", "gathered") > 0


def test_with_adapters_the_actor_is_its_own_reference_and_counts_once() -> None:
    adapters = {**GRPO, f"{MODEL}.lora_rank": 32}
    assert part(adapters, "ref", "waiting") == 0
    assert part(adapters, "ref", "weights") == part(adapters, "old_log_prob", "weights") > 0


def test_sglang_leaves_room_for_what_runs_and_vllm_for_all_that_may() -> None:
    sglang = {**GRPO, f"{ROLLOUT}.name": "sglang"}
    assert 0 < part(sglang, "rollout", "profile") < part(GRPO, "rollout", "profile") / 5


def test_megatron_divides_by_tensor_and_pipeline_and_recomputes_only_where_told() -> None:
    megatron = {**GRPO, f"{ACTOR}.strategy": "megatron", f"{ACTOR}.megatron.tensor_model_parallel_size": 4}
    assert part(megatron, "update_actor", "weights") == 2 * 7_615_616_512 // 4
    assert part(megatron, "update_actor", "optimizer") == 12 * 7_615_616_512 // 4 // 2
    assert part(megatron, "update_actor", "activations") > 0
    key = f"{ACTOR}.megatron.override_transformer_config.recompute_granularity"
    assert part({**megatron, key: "full"}, "update_actor", "activations") == 0


@pytest.mark.parametrize("sizes", [(1024, 2048), (4096, 8192)])
def test_all_that_follows_the_tokens_says_so_and_nothing_else(sizes: tuple[int, int]) -> None:
    megatron = {**GRPO, f"{ACTOR}.strategy": "megatron", f"{ACTOR}.megatron.tensor_model_parallel_size": 4}
    few, many = (phase({**megatron, f"{ACTOR}.ppo_max_token_len_per_gpu": size}, "update_actor") for size in sizes)
    before = {part.name: part for part in few.parts}
    grown = {part.name for part in many.parts if part.name in before and part.bytes > before[part.name].bytes}
    assert {part.name for part in many.parts if part.stay == "per_token"} == grown - {"gaps", "left_behind"}
    assert "sequences" in grown


def test_adam_on_the_host_takes_its_states_along() -> None:
    megatron = {**GRPO, f"{ACTOR}.strategy": "megatron", f"{ACTOR}.megatron.tensor_model_parallel_size": 4}
    away = {**megatron, f"{ACTOR}.optim.override_optimizer_config.optimizer_offload_fraction": 1.0}
    assert part(away, "update_actor", "optimizer") == 0
    assert estimate(away).host.expected_bytes - estimate(megatron).host.expected_bytes == 16 * 7_615_616_512


def test_weights_that_are_not_divided_again_stay_whole_while_the_model_learns() -> None:
    whole = {**GRPO, f"{ACTOR}.fsdp_config.reshard_after_forward": False}
    assert part(whole, "update_actor", "gathered") == 2 * 7_615_616_512


@pytest.mark.parametrize("version", ["0.2.0", "0.4", "0.5.0", "0.7.1", "0.9.1", "12.0", "main", ""])
def test_every_version_gets_an_estimate(version: str) -> None:
    assert estimate(GRPO, version=version).phase("update_actor") is not None


VALUES = st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=12))
KEYS = sorted({*keys_of("0.9", "fsdp"), *keys_of("0.9", "megatron"), *keys_of("0.3", "fsdp")})


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=25), st.sampled_from(["0.2", "0.5", "0.9", "?"]))
@settings(max_examples=60, deadline=None)
def test_whatever_a_configuration_holds_there_is_an_estimate_or_a_reason(config: dict[str, Any], version: str) -> None:
    with contextlib.suppress(ValueError):
        found = estimate_of({**GRPO, **config}, _shape(), 80 * GIB, version=version)
        assert all(phase.low_bytes <= phase.expected_bytes <= phase.high_bytes for phase in found.phases)


def test_a_configuration_without_any_size_is_refused_with_what_to_set() -> None:
    nothing = {f"{ROLLOUT}.name": "hf", "algorithm.adv_estimator": "grpo"}
    with pytest.raises(ValueError, match="ppo_micro_batch_size_per_gpu"):
        estimate_of(nothing, _shape(), 80 * GIB)
    with pytest.raises(ValueError, match="card"):
        estimate_of(GRPO, _shape(), 0)


def _shape() -> ModelShape:
    shape = shape_named("Qwen2.5-7B")
    assert shape is not None
    return shape
