"""How the value to set is worked out, one remedy after the other."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.advice.runs import ACTOR, CONFIG, FORK, OLD, ROLLOUT, device, host, speed, switch
from tests.core.story import GIB

from oomwatch import wire
from oomwatch.advice.choose import Option, options_for, override
from oomwatch.core.facts import Facts
from oomwatch.core.parts import Part
from oomwatch.core.settings import settings_of
from oomwatch.plan.problems import problems_of


def found(
    remedy: str,
    cause: str,
    facts: Facts,
    config: Mapping[str, wire.ConfigValue] = CONFIG,
    version: str | None = "0.9.1",
) -> Option | None:
    options = options_for(wire.Cause(cause=cause, score=0.5, phase=facts.phase), config, facts, version)
    return next((one for one in options if one.entry.remedy == remedy), None)


def to(remedy: str, cause: str, facts: Facts, **more: Any) -> wire.ConfigValue | None:
    option = found(remedy, cause, facts, **more)
    return option.change.to if option and option.change else None


def frees_gib(remedy: str, cause: str, facts: Facts, **more: Any) -> float:
    option = found(remedy, cause, facts, **more)
    assert option is not None
    assert option.change is not None
    assert option.change.frees_bytes is not None
    return option.change.frees_bytes / GIB


# ---------------------------------------------------------------- batches


def test_a_log_prob_batch_is_halved_until_it_is_enough() -> None:
    """46 GiB of work for 8 sequences: 4 free 23, 2 free 34.5."""
    facts = device("old_log_prob", needed_bytes=7.0 * GIB)
    assert to("smaller_log_prob_batch", "log_prob_micro_batch", facts) == 4
    assert frees_gib("smaller_log_prob_batch", "log_prob_micro_batch", facts) == 23
    facts = device("old_log_prob", needed_bytes=30.0 * GIB)
    assert to("smaller_log_prob_batch", "log_prob_micro_batch", facts) == 2


def test_a_batch_that_can_never_be_enough_becomes_one() -> None:
    assert to("smaller_log_prob_batch", "log_prob_micro_batch", device("old_log_prob", needed_bytes=60.0 * GIB)) == 1


def test_a_batch_of_one_cannot_be_smaller() -> None:
    config = CONFIG | {f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 1}
    assert found("smaller_log_prob_batch", "log_prob_micro_batch", device("old_log_prob"), config) is None


@pytest.mark.parametrize(
    ("mini", "micro", "expected"),
    [
        (60, 8, 4),  # 60 * 12 / 6 = 120 a GPU, which 4 divides
        (60, 10, 5),
        (33, 8, 3),  # 66 a GPU: neither 4 does, so 3
        (7, 4, 2),  # 14 a GPU
    ],
)
def test_an_update_batch_divides_the_mini_batch_of_a_gpu(mini: int, micro: int, expected: int) -> None:
    config = CONFIG | {f"{ACTOR}.ppo_mini_batch_size": mini, f"{ACTOR}.ppo_micro_batch_size_per_gpu": micro}
    assert to("smaller_update_batch", "actor_update", device("update_actor", config), config=config) == expected


def test_gpus_that_hold_one_model_together_cut_its_whole_mini_batch() -> None:
    """Of 63 x 12 sequences each of 6 GPUs has 126, which 9 divides; six that are one rank have all: 12 divides them."""
    mini: dict[str, wire.ConfigValue] = {
        f"{ACTOR}.ppo_mini_batch_size": 63,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 24,
    }
    megatron: dict[str, wire.ConfigValue] = {
        f"{ACTOR}.strategy": "megatron",
        f"{ACTOR}.megatron.tensor_model_parallel_size": 6,
    }
    for config, expected in ((CONFIG | mini, 9), (CONFIG | mini | megatron, 12)):
        facts = device("update_actor", config)
        assert to("smaller_update_batch", "actor_update", facts, config=config) == expected


@pytest.mark.parametrize(("prompts", "micro", "expected"), [(60, 18, 8), (33, 8, 4)])
def test_a_log_prob_batch_divides_a_gpus_share_of_a_step(prompts: int, micro: int, expected: int) -> None:
    """Of 120 sequences a GPU 9 is no divisor and 8 is one; 33 prompts are filled up to a mini batch, 120 again."""
    config = CONFIG | {"data.train_batch_size": prompts, f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": micro}
    facts = device("old_log_prob", needed_bytes=1.0 * GIB)
    assert to("smaller_log_prob_batch", "log_prob_micro_batch", facts, config=config) == expected


def test_with_sequence_parallelism_a_gpu_has_a_larger_mini_batch() -> None:
    """Two GPUs share each sequence: three ranks of 240, which 4 divides; of 66 * 2 = 132 too."""
    config = CONFIG | {f"{ACTOR}.ppo_mini_batch_size": 33, f"{ACTOR}.ulysses_sequence_parallel_size": 2}
    assert to("smaller_update_batch", "actor_update", device("update_actor", config), config=config) == 4


def test_a_deprecated_key_is_changed_where_the_run_has_that() -> None:
    config = {key: value for key, value in CONFIG.items() if key != f"{ACTOR}.ppo_micro_batch_size_per_gpu"}
    config |= {f"{ACTOR}.ppo_micro_batch_size": 60}
    option = found("smaller_update_batch", "actor_update", device("update_actor", config), config)
    assert option is not None
    assert option.key == f"{ACTOR}.ppo_micro_batch_size"
    assert option.change is not None
    assert option.change.to == 30
    assert to("smaller_update_batch", "actor_update", device("update_actor"), config=config | {option.key: 48}) == 20
    assert "deprecated_divides" in {one.check for one in problems_of(config | {option.key: 24}, "0.7.1")}
    assert "deprecated_divides" not in {one.check for one in problems_of(config | {option.key: 20}, "0.7.1")}


def test_where_the_phase_is_another_its_batch_is_left_alone() -> None:
    assert found("smaller_log_prob_batch", "log_prob_micro_batch", device("ref")) is None
    assert to("smaller_ref_batch", "log_prob_micro_batch", device("ref")) == 4


def test_a_dynamic_batch_gets_fewer_tokens_and_still_holds_the_longest_sequence() -> None:
    config = CONFIG | {f"{ACTOR}.use_dynamic_bsz": True}
    assert to("fewer_tokens_a_batch", "actor_update", device("update_actor", config), config=config) == 8192
    tight = device("update_actor", config, needed_bytes=40.0 * GIB)
    assert to("fewer_tokens_a_batch", "actor_update", tight, config=config) == 5120  # 1024 + 4096
    config |= {f"{ACTOR}.ppo_max_token_len_per_gpu": 5120}
    assert found("fewer_tokens_a_batch", "actor_update", device("update_actor", config), config) is None


def test_dynamic_batches_bound_what_eight_long_sequences_would_hold() -> None:
    """8 * 5120 = 40,960 tokens against 16,384: 60 % of 46 GiB."""
    facts = device("update_actor")
    assert to("dynamic_batches", "length_growth", facts) is True
    assert frees_gib("dynamic_batches", "length_growth", facts) == pytest.approx(27.6)


# ---------------------------------------------------------------- the engine


@pytest.mark.parametrize(
    ("share", "needed", "expected"),
    [(0.6, 8, 0.5), (0.6, 9, 0.45), (0.6, 0, 0.5), (0.6, 1, 0.55), (0.85, 4, 0.8), (0.3, 60, 0.2)],
)
def test_the_engines_share_is_lowered_by_what_is_needed(share: float, needed: float, expected: float) -> None:
    config = CONFIG | {f"{ROLLOUT}.gpu_memory_utilization": share}
    facts = device("rollout", config, needed_bytes=needed * GIB)
    assert to("lower_engine_share", "rollout_kv_budget", facts, config=config) == expected


def test_a_share_that_is_least_stays() -> None:
    config = CONFIG | {f"{ROLLOUT}.gpu_memory_utilization": 0.2}
    assert found("lower_engine_share", "rollout_kv_budget", device("rollout", config), config) is None


def test_an_engine_may_stay_awake_only_where_training_has_room_beside_it() -> None:
    roomy = CONFIG | {f"{ROLLOUT}.gpu_memory_utilization": 0.3}
    facts = device("rollout", roomy, residue_rise_bytes=1.0)
    assert to("keep_engine_awake", "sleep_residue", facts, config=roomy) is False
    assert found("keep_engine_awake", "sleep_residue", device("rollout")) is None


def test_buckets_are_halved_until_enough() -> None:
    assert to("smaller_transfer_buckets", "weight_sync", device("update_weights", needed_bytes=2.0 * GIB)) == 1024
    assert to("smaller_transfer_buckets", "weight_sync", device("update_weights", needed_bytes=9.0 * GIB)) == 256


def test_a_bucket_has_another_name_in_older_versions() -> None:
    config = {key: value for key, value in CONFIG.items() if "checkpoint_engine" not in key}
    config |= {f"{ROLLOUT}.update_weights_bucket_megabytes": 512}
    option = found("smaller_transfer_buckets", "weight_sync", device("update_weights"), config, "0.6.1")
    assert option is not None
    assert option.key == f"{ROLLOUT}.update_weights_bucket_megabytes"


def test_tensor_parallelism_is_doubled_only_if_the_gpus_can_be_divided() -> None:
    assert to("more_tensor_parallel", "rollout_kv_budget", device("rollout")) == 2
    config = CONFIG | {f"{ROLLOUT}.tensor_model_parallel_size": 2}  # 4 do not divide 6
    assert found("more_tensor_parallel", "rollout_kv_budget", device("rollout", config), config) is None


def test_graphs_are_captured_for_few_sizes_and_written_as_a_list() -> None:
    assert to("fewer_captured_graphs", "rollout_kv_budget", device("rollout")) == "1,2,4,8,16,32"
    assert override("k", "1,2,4,8,16,32") == "k=[1,2,4,8,16,32]"
    eager = CONFIG | {f"{ROLLOUT}.enforce_eager": True}
    assert found("fewer_captured_graphs", "rollout_kv_budget", device("rollout", eager), eager) is None


# ---------------------------------------------------------------- flags and conditions


def test_what_is_on_already_is_not_advised() -> None:
    config = CONFIG | {f"{ACTOR}.fsdp_config.optimizer_offload": True}
    assert found("offload_optimizer", "actor_update", device("update_actor", config), config) is None


def test_sequence_parallelism_needs_padding_removed() -> None:
    assert to("sequence_parallel", "actor_update", device("update_actor")) == 2
    assert found("sequence_parallel", "actor_update", device("update_actor", OLD), OLD, "0.4.1") is None


@pytest.mark.parametrize(
    ("engine", "version", "advised"),
    [("sglang", "0.4.1", True), ("sglang", "0.6.0", False), ("vllm", "0.4.1", False), (None, "0.4.1", False)],
)
def test_expandable_segments_are_never_advised_beside_vllm_or_to_a_verl_that_switches_them(
    engine: str | None, version: str, *, advised: bool
) -> None:
    config = {key: value for key, value in OLD.items() if key != f"{ROLLOUT}.name"}
    config |= {f"{ROLLOUT}.name": engine} if engine else {}
    facts = device("update_actor", config)
    assert (found("expandable_segments", "fragmentation", facts, config, version) is not None) == advised


def test_a_run_with_an_unknown_version_is_told_nothing_of_expandable_segments() -> None:
    config = {f"{ROLLOUT}.name": "sglang"}
    assert found("expandable_segments", "fragmentation", device("update_actor", config), config, None) is None


# ---------------------------------------------------------------- what grows


def test_a_run_is_restarted_well_before_it_is_full() -> None:
    facts = device("update_actor", steps_left=35.0, pace_bytes=0.2 * GIB, floor_rise_bytes=3.0 * GIB)
    assert to("restart_periodically", "leak", facts) == 30  # six tenths of 35 and the 15 that are free again
    often = CONFIG | {"trainer.save_freq": 10}
    assert to("restart_periodically", "leak", facts, config=often) == 10


def test_a_forecast_says_when_it_is_full() -> None:
    assert to("restart_periodically", "leak", device("update_actor", steps_left=60.0, verdict={"eta_steps": 40})) == 24


def test_the_earlier_of_two_ends_says_how_often_to_restart() -> None:
    assert to("restart_periodically", "leak", device("update_actor", steps_left=9.0, verdict={"eta_steps": 40})) == 5


def test_a_host_is_full_when_what_grows_there_says_so() -> None:
    """40 GiB in ten minutes are 4 GiB a step of a minute; 75 and 40 GiB are free after a restart: 28 steps."""
    worker = Part("worker", 300.0 * GIB, 40.0 * GIB, "ray::WorkerDict", 600.0)
    facts = msgspec.structs.replace(
        host("machine"), host_parts=(worker,), host_used_bytes=400.0 * GIB, step_seconds=60.0
    )
    assert to("restart_periodically", "host_leak", facts) == 17


def test_nothing_is_restarted_where_nothing_grows() -> None:
    assert found("restart_periodically", "leak", device("update_actor")) is None


# ---------------------------------------------------------------- the host and the rest


def test_what_is_offloaded_goes_back_to_the_card() -> None:
    assert to("optimizer_back_to_card", "host_offload", host("machine"), config=OLD, version="0.4.1") is False


def test_which_limit_kills_says_what_to_raise() -> None:
    assert found("more_container_memory", "driver_process", host("container")) is not None
    assert found("more_container_memory", "driver_process", host("machine")) is None
    assert found("more_host_memory", "driver_process", host("machine")) is not None


def test_a_step_is_halved_only_if_the_mini_batch_still_divides_it() -> None:
    assert to("smaller_steps", "driver_process", host("machine")) == 60
    config = CONFIG | {"data.train_batch_size": 60}
    assert found("smaller_steps", "driver_process", host("machine"), config) is None


def test_a_card_with_room_gives_the_engine_more() -> None:
    assert to("larger_engine_share", "kv_pressure", speed()) == 0.7


def test_keys_of_articles_are_named_only_to_a_run_that_has_them() -> None:
    assert found("fork_steps_per_update", "weight_sync", switch()) is None
    assert to("fork_steps_per_update", "weight_sync", switch(), config=FORK, version=None) == 4
    assert to("fork_smaller_buffer", "driver_process", host("machine"), config=FORK, version=None) == 1024


def test_the_settings_are_read_with_their_kinds() -> None:
    settings = settings_of(
        {"actor_rollout_ref.rollout.gpu_memory_utilization": "much", "data.max_response_length": True}
    )
    assert settings.known
    assert settings.kv_share is None
    assert settings.response_cap_tokens is None
