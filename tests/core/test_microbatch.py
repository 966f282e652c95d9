"""How long the responses of a card's largest micro batch are, told from the step's mean and longest."""

import random
from statistics import fmean

import pytest

from oomwatch import wire
from oomwatch.core import microbatch
from oomwatch.core.memo import Keeping
from oomwatch.core.microbatch import response_cap
from oomwatch.core.peaks import Figures, GpuStep
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.steps import StepRecord
from oomwatch.plan.batches import batches_of
from oomwatch.plan.settings import Config

MICRO = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
STRATEGY = "actor_rollout_ref.actor.strategy"
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


def step(
    mean: float | None = 1000.0, longest: float | None = 4000.0, tokens: float | None = None, clip: float | None = None
) -> GpuStep:
    told = wire.Step(
        step=9,
        step_seconds=60.0,
        response_length_mean_tokens=mean,
        response_length_max_tokens=longest,
        tokens_total=tokens,
        response_clip_ratio=clip,
    )
    return GpuStep.of(StepRecord(0.0, told, segment=0, usual=True, backlog=False), Figures())


def largest_ratio(phase: str, steps: list[GpuStep], config: Config, version: str = "0.7.1") -> float:
    return microbatch.largest_ratio(phase, steps, config, batches_of(config, version))


def full_ratio(phase: str, told: GpuStep, config: Config) -> float:
    return microbatch.full_ratio(phase, told, batches_of(config))


def longer_prompts(steps: list[GpuStep], config: Config) -> float:
    return microbatch.longer_prompts(steps, config, batches_of(config))


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
    assert response_cap([step(clip=0.1)], {}) == 4000
    assert response_cap([step(clip=0.0)], {}) is None


def test_prompts_may_be_longer_too_by_half_of_what_is_left() -> None:
    told = step(tokens=512 * 1200.0)  # 200 tokens of prompt each
    assert longer_prompts([told], CONFIG | {"data.max_prompt_length": 1000}) == 400.0
    assert longer_prompts([told], CONFIG | {"data.max_prompt_length": 100}) == 0.0
    assert longer_prompts([told], {"data.max_prompt_length": 1000}) == 0.0
    assert longer_prompts([step()], CONFIG | {"data.max_prompt_length": 1000}) == 0.0


def test_cards_that_hold_one_model_together_cut_the_same_sequences() -> None:
    """Eight cards that are one rank of Megatron's have all of a step: as many micro batches as one card alone."""
    tensor = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size"
    eight = CONFIG | {"trainer.n_gpus_per_node": 8, MICRO: 8, STRATEGY: "megatron"}
    together, alone = eight | {tensor: 8}, CONFIG | {"trainer.n_gpus_per_node": 1, MICRO: 8}
    assert largest_ratio("update_actor", [step()], together) == largest_ratio("update_actor", [step()], alone)
    assert largest_ratio("update_actor", [step()], together) > largest_ratio("update_actor", [step()], eight)


def test_cards_that_share_a_sequence_share_its_tokens() -> None:
    """Of 64 K tokens each of 8 cards has 8 K, whoever shares; two ranks of four have 32 K each, and fill sooner."""
    ulysses = {"actor_rollout_ref.actor.ulysses_sequence_parallel_size": 4}
    eight = CONFIG | DYNAMIC | {"trainer.n_gpus_per_node": 8}
    megatron = eight | {STRATEGY: "megatron"}
    context = megatron | {"actor_rollout_ref.actor.megatron.context_parallel_size": 4}
    tensor = megatron | {"actor_rollout_ref.actor.megatron.tensor_model_parallel_size": 4}
    told = step(tokens=65_536)
    assert [full_ratio("update_actor", told, one) for one in (eight, eight | ulysses, context)] == [2.0, 2.0, 2.0]
    assert full_ratio("update_actor", told, tensor) == 0.0


def test_a_newer_critic_s_passes_are_cut_by_tokens_whatever_its_micro_batch() -> None:
    critic = CONFIG | {"critic.ppo_micro_batch_size_per_gpu": 4, "critic.forward_micro_batch_size_per_gpu": 4}
    assert largest_ratio("values", [step()], critic, "0.9.1") == 1.0
    assert largest_ratio("values", [step()], critic, "0.7.1") > 1.0


def test_a_run_s_batches_are_worked_out_once_for_each_configuration() -> None:
    run = RunRecord("a", 0.0, Keeping())
    before = run.batches
    assert run.batches is before
    run.config = {**CONFIG}
    assert run.batches.sequences_per_step == 512
    known = run.batches
    run.framework_version = "0.5.0"
    assert run.batches is not known


def test_settings_that_make_no_sense_stop_nothing() -> None:
    for value in (0, -3, "many", True, 2.5):
        odd: dict[str, wire.ConfigValue] = dict.fromkeys((*CONFIG, *DYNAMIC, MICRO, STRATEGY), value)
        assert largest_ratio("update_actor", [step()], odd) >= 1.0
        assert full_ratio("update_actor", step(tokens=100.0), odd) >= 0.0
        assert longer_prompts([step(tokens=100.0)], odd) >= 0.0
