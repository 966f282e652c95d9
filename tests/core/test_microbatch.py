"""How long the responses of a card's largest micro batch are, told from the step's mean and longest."""

import random
from statistics import fmean

import pytest

from oomwatch import wire
from oomwatch.core.microbatch import full_ratio, largest_ratio, longer_prompts, response_cap
from oomwatch.core.peaks import GpuStep

MICRO = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
CONFIG: dict[str, wire.ConfigValue] = {
    "data.train_batch_size": 64,
    "actor_rollout_ref.rollout.n": 8,
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 2,
}
DYNAMIC: dict[str, wire.ConfigValue] = {
    "actor_rollout_ref.actor.use_dynamic_bsz": True,
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": 16_384,
}


def step(mean: float | None = 1000.0, longest: float | None = 4000.0, tokens: float | None = None) -> GpuStep:
    return GpuStep(
        at=0.0,
        step=9,
        segment=0,
        usual=True,
        seconds=60.0,
        length_mean_tokens=mean,
        length_max_tokens=longest,
        tokens_total=tokens,
    )


@pytest.mark.parametrize("size", [2, 4, 8, 32, 256])
@pytest.mark.parametrize("spread", [0.3, 0.5, 0.7])
def test_it_is_what_random_batches_hold(size: int, spread: float) -> None:
    dice = random.Random(size)
    steps, found = [], []
    for _ in range(40):
        lengths = [dice.lognormvariate(7.0, spread) for _ in range(512)]
        steps.append(step(fmean(lengths), max(lengths)))
        card = lengths[:256]
        largest = max(fmean(card[start : start + size]) for start in range(0, 256, size))
        found.append(largest / fmean(lengths))
    assert largest_ratio("update_actor", steps, CONFIG | {MICRO: size}) == pytest.approx(fmean(found), rel=0.12)


def test_one_sequence_at_a_time_is_nearly_the_longest() -> None:
    assert 2.5 < largest_ratio("update_actor", [step()], CONFIG | {MICRO: 1}) <= 4.0


def test_what_the_configuration_does_not_tell_is_taken_as_the_longest_alone() -> None:
    assert largest_ratio("update_actor", [step()], CONFIG) == 4.0
    assert largest_ratio("update_actor", [step()], {MICRO: 8}) == 4.0
    padded: dict[str, wire.ConfigValue] = {MICRO: 8, "actor_rollout_ref.model.use_remove_padding": False}
    assert largest_ratio("update_actor", [step()], CONFIG | padded) == 4.0


def test_without_the_longest_response_the_mean_stands_for_all() -> None:
    assert largest_ratio("update_actor", [step(longest=None)], CONFIG | {MICRO: 8}) == 1.0


def test_values_have_a_size_of_their_own_or_the_update_s() -> None:
    critic = "critic.ppo_micro_batch_size_per_gpu"
    forward = "critic.forward_micro_batch_size_per_gpu"
    both = CONFIG | {critic: 4, forward: 64}
    assert largest_ratio("values", [step()], both) < largest_ratio("update_critic", [step()], both)
    assert largest_ratio("values", [step()], CONFIG | {critic: 4}) == largest_ratio("update_critic", [step()], both)


def test_a_dynamic_batch_grows_until_it_is_full() -> None:
    assert full_ratio("update_actor", step(), CONFIG) == float("inf")
    assert full_ratio("update_actor", step(tokens=2 * 8_192), CONFIG | DYNAMIC) == 2.0
    assert full_ratio("update_actor", step(tokens=2 * 20_000), CONFIG | DYNAMIC) == 0.0
    assert full_ratio("update_actor", step(tokens=None), CONFIG | DYNAMIC) == 0.0
    assert largest_ratio("update_actor", [step()], CONFIG | DYNAMIC) == 1.0


def test_the_cap_is_configured_or_shown_by_what_was_clipped() -> None:
    assert response_cap([step()], {"data.max_response_length": 2048}) == 2048
    assert response_cap([step()._replace(clip_ratio=0.1)], {}) == 4000
    assert response_cap([step()._replace(clip_ratio=0.0)], {}) is None


def test_prompts_may_be_longer_too_by_half_of_what_is_left() -> None:
    told = step(tokens=512 * 1200.0)  # 200 tokens of prompt each
    assert longer_prompts([told], CONFIG | {"data.max_prompt_length": 1000}) == 400.0
    assert longer_prompts([told], CONFIG | {"data.max_prompt_length": 100}) == 0.0
    assert longer_prompts([told], {"data.max_prompt_length": 1000}) == 0.0
    assert longer_prompts([step()], CONFIG | {"data.max_prompt_length": 1000}) == 0.0
