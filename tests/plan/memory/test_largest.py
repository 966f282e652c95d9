"""The largest settings that still fit."""

from collections.abc import Iterable
from typing import Literal

import pytest
from tests.plan.memory.test_verl import ACTOR, GRPO, REF, ROLLOUT

from oomwatch.plan.cards import card_named
from oomwatch.plan.memory import Largest, estimate_of, largest_that_fits
from oomwatch.plan.models import shape_named
from oomwatch.plan.settings import Config
from oomwatch.plan.verlkeys import STRATEGIES, keys_of, releases

SHAPE, CARD = shape_named("Qwen2.5-7B"), card_named("H100")
TOKENS, SHARE = f"{ACTOR}.ppo_max_token_len_per_gpu", f"{ROLLOUT}.gpu_memory_utilization"


def largest(config: Config) -> dict[str, Largest]:
    assert SHAPE is not None
    assert CARD is not None
    return {one.key: one for one in largest_that_fits(config, SHAPE, CARD, version="0.8")}


def verdict(config: Config, phase: str) -> str:
    assert SHAPE is not None
    assert CARD is not None
    found = estimate_of(config, SHAPE, CARD, version="0.8").phase(phase)
    assert found is not None
    return found.verdict


def worst(config: Config, phases: Iterable[str]) -> str:
    found = {verdict(config, phase) for phase in phases}
    return next(one for one in ("will_not_fit", "tight", "fits") if one in found)


def test_the_largest_token_limit_fits_and_the_next_does_not() -> None:
    found = largest(GRPO)[TOKENS]
    assert found.now == 8192
    assert found.fits is not None
    assert found.at_most is not None
    assert found.fits < found.at_most
    assert worst({**GRPO, TOKENS: int(found.fits)}, found.phases) == "fits"
    assert worst({**GRPO, TOKENS: int(found.fits) + 256}, found.phases) == "tight"
    assert worst({**GRPO, TOKENS: int(found.at_most) + 256}, found.phases) == "will_not_fit"


def test_a_limit_that_others_follow_is_judged_by_their_phases_too() -> None:
    assert largest(GRPO)[TOKENS].phases == ("old_log_prob", "ref", "update_actor")
    own = {f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 8192, f"{REF}.log_prob_max_token_len_per_gpu": 8192}
    assert largest({**GRPO, **own})[TOKENS].phases == ("update_actor",)


def test_the_engines_share_is_bounded_from_both_sides() -> None:
    found = largest(GRPO)[SHARE]
    assert found.fits is not None
    assert verdict({**GRPO, SHARE: found.fits}, "rollout") == "fits"
    assert verdict({**GRPO, SHARE: 0.05}, "rollout") == "will_not_fit"
    assert verdict({**GRPO, SHARE: 0.95}, "rollout") == "will_not_fit"


def test_a_micro_batch_is_offered_only_where_it_divides() -> None:
    fixed = {**GRPO, f"{ACTOR}.use_dynamic_bsz": False, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 1}
    fixed |= {f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 1}
    found = largest(fixed)[f"{ACTOR}.ppo_micro_batch_size_per_gpu"]
    assert found.fits is not None
    assert 64 * 8 // 8 % found.fits == 0


def test_no_response_is_offered_that_a_dynamic_batch_could_not_hold() -> None:
    found = largest(GRPO)["data.max_response_length"]
    assert found.at_most is not None
    assert found.at_most + 1024 <= 8192


def test_where_nothing_fits_nothing_is_offered() -> None:
    assert SHAPE is not None
    found = {one.key: one for one in largest_that_fits(GRPO, SHAPE, 12 * 2**30, version="0.8")}
    assert (found[TOKENS].fits, found[TOKENS].at_most) == (None, None)


def of_release(release: str, strategy: Literal["fsdp", "megatron"], *, is_dynamic: bool) -> Config:
    """Every phase that a run may have, in the settings that the release has for it."""
    told = {
        **GRPO,
        "algorithm.adv_estimator": "gae",
        "critic.model.use_remove_padding": True,
        f"{ACTOR}.strategy": strategy,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 2,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 2,
        f"{REF}.log_prob_micro_batch_size_per_gpu": 2,
        "critic.ppo_micro_batch_size_per_gpu": 2,
    }
    known = keys_of(release, strategy)
    told[f"{ACTOR}.use_dynamic_bsz"] = is_dynamic and TOKENS in known  # Megatron has none before 0.4
    return {key: value for key, value in told.items() if key in known}


@pytest.mark.parametrize("is_dynamic", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("release", releases())
def test_each_setting_that_is_offered_sizes_what_it_says_and_no_phase_is_without_one(
    release: str, strategy: Literal["fsdp", "megatron"], is_dynamic: bool
) -> None:
    assert SHAPE is not None
    config = of_release(release, strategy, is_dynamic=is_dynamic)
    offered = largest_that_fits(config, SHAPE, 141 * 2**30, version=release)
    now = estimate_of(config, SHAPE, 141 * 2**30, version=release)
    for one in offered:
        assert one.key in keys_of(release, strategy) or one.key == "critic.ppo_infer_max_token_len_per_gpu"
        small, large = (
            estimate_of({**config, one.key: value}, SHAPE, 141 * 2**30, version=release)
            for value in ((0.3, 0.8) if one.key == SHARE else (1, 2) if "micro_batch" in one.key else (512, 4096))
        )
        for phase in one.phases:
            assert small.phase(phase) != large.phase(phase) or phase == "rollout", (one.key, phase)
    assert {phase for one in offered for phase in one.phases} >= {one.phase for one in now.phases} - {"update_weights"}
    assert {"values", "update_critic", "update_actor", "old_log_prob"} <= {one.phase for one in now.phases}


def test_the_critics_passes_are_sized_by_what_its_engine_reads() -> None:
    assert SHAPE is not None
    config = {**GRPO, "algorithm.adv_estimator": "gae"}
    before, after = (
        {
            key
            for one in largest_that_fits(config, SHAPE, 141 * 2**30, version=version)
            if "values" in one.phases
            for key in [one.key]
        }
        for version in ("0.7.1", "0.9.1")
    )
    assert "critic.forward_max_token_len_per_gpu" in before
    assert "critic.forward_max_token_len_per_gpu" not in after
    assert "critic.ppo_infer_max_token_len_per_gpu" in after


def test_a_cap_that_sizes_nothing_is_not_offered() -> None:
    known = {**GRPO, "data.train_files": "/data/gsm8k/train.parquet"}
    assert "data.max_response_length" in largest(GRPO)
    assert "data.max_response_length" not in largest(known)
