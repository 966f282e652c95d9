"""Whether the longest batch that is allowed would fit, told from the usual ones."""

import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
from tests.core.step_story import Told, configure, gpu_of, tell_all
from tests.core.story import CARD_BYTES, GIB, Story, shipped

from oomwatch import wire
from oomwatch.core.conditions.worst_case import WorstCase
from oomwatch.core.relation import Line, Point, slope_through

RULE = WorstCase()
CAP = 4096
# Micro batches of 8 of 512 sequences on one card.
SETTINGS: dict[str, wire.ConfigValue] = {
    "data__max_response_length": CAP,
    "data__train_batch_size": 64,
    "trainer__nnodes": 1,
    "actor_rollout_ref__rollout__n": 8,
    "actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu": 8,
}


def holds(points: list[Point], at: float) -> Line | None:
    slope = slope_through(points)
    return RULE.holds_for(points, slope, at, CARD_BYTES) if slope else None


def points(at_cap: float, steps: int = 40, noise: float = 0.015, seed: int = 1) -> list[Point]:
    """Means that vary by 6 %, and peaks that would be that share of the card at a mean of 2,800 tokens."""
    dice = random.Random(seed)
    means = [dice.gauss(1000.0, 60.0) for _ in range(steps)]
    return [(mean, (0.3 + (at_cap - 0.3) * mean / 2800 + dice.gauss(0, noise)) * CARD_BYTES) for mean in means]


def test_what_would_not_fit_is_seen_from_usual_batches() -> None:
    line = holds(points(1.4), 2800.0)
    assert line is not None
    assert 1.2 < line.at(2800.0) / CARD_BYTES < 1.7


@pytest.mark.parametrize("at_cap", [0.6, 0.8, 0.92])
def test_what_fits_is_left_alone(at_cap: float) -> None:
    for seed in range(20):
        run = points(at_cap, seed=seed)
        assert all(holds(run[:end], 2800.0) is None for end in range(8, 41))


def test_few_steps_and_peaks_that_follow_no_length_say_nothing() -> None:
    assert holds(points(1.4, steps=7), 2800.0) is None
    dice = random.Random(1)
    assert holds([(dice.uniform(900, 1100), dice.gauss(0.8, 0.02) * CARD_BYTES) for _ in range(40)], 2800.0) is None


def following(number: int) -> Told:
    """20 GiB and 24 more for each thousand tokens of the mean: 43 GiB in usual steps. Some responses are at the cap."""
    mean = 800.0 + 30 * (number * 7 % 11)
    peak = 20.0 + 24 * mean / 1000
    return Told(old_log_prob=15.0, update_actor=peak, length_mean=mean, length_max=CAP, clip_ratio=0.01)


def heard(shape: Callable[[int], Told] = following, gpus: Literal[1, 2] = 1, **settings: wire.ConfigValue) -> Story:
    on = {"trainer__n_gpus_per_node": gpus}
    story = configure(Story(shipped("longest_batch_too_big"), run="r", gpus=gpus), **{**SETTINGS, **on, **settings})
    return tell_all(story, 20, shape, gpus=gpus)


def test_a_run_is_told_the_phase_and_what_is_missing() -> None:
    (fired,) = heard().heard
    assert fired.facts["phase"] == "update_actor"
    # The largest of 64 micro batches holds 1.53 times the mean: all at the cap is as a step with a mean of 2,670.
    assert float(fired.facts["predicted_bytes"]) / GIB == pytest.approx(20 + 24 * 2.67, abs=1.5)
    assert float(fired.facts["short_bytes"]) == float(fired.facts["predicted_bytes"]) - CARD_BYTES
    assert (fired.facts["cap_tokens"], fired.facts["length_max_tokens"]) == (CAP, CAP)


def test_a_batch_of_fewer_tokens_each_fits() -> None:
    assert (
        heard(lambda number: following(number)._replace(update_actor=following(number).update_actor - 12)).heard == []
    )


def test_what_is_there_without_any_batch_does_not_grow_with_it() -> None:
    """30 GiB are in use at the least: of 43, no more than 13 can follow the batch."""
    assert heard(lambda number: following(number)._replace(old_log_prob=30.0)).heard == []


def test_a_cap_far_beyond_what_the_model_says_is_no_danger() -> None:
    assert heard(lambda number: following(number)._replace(length_max=2000.0, clip_ratio=0.0)).heard == []


def test_micro_batches_of_one_have_shown_the_worst_case() -> None:
    assert heard(actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu=1).heard == []


def test_padded_batches_are_as_long_as_their_longest_response() -> None:
    assert heard(actor_rollout_ref__model__use_remove_padding=False).heard == []


def test_without_a_micro_batch_size_the_longest_response_speaks_for_all() -> None:
    assert heard(actor_rollout_ref__rollout__n=0).heard == []


def test_no_batch_is_foretold_beyond_three_times_the_longest_mean() -> None:
    """At the cap of 32,768 nothing would fit; with three times the mean all does."""

    def shape(number: int) -> Told:
        told = following(number)
        return told._replace(update_actor=20.0 + 16 * (told.length_mean or 0) / 1000, length_max=32768.0)

    assert heard(shape, data__max_response_length=32768).heard == []


def test_batches_bounded_by_their_tokens_grow_no_more_once_they_are_full() -> None:
    dynamic: Any = {
        "actor_rollout_ref__actor__use_dynamic_bsz": True,
        "actor_rollout_ref__actor__ppo_max_token_len_per_gpu": 16384,
    }
    assert heard(lambda number: following(number)._replace(tokens_total=100_000.0), **dynamic).heard == []
    assert heard(lambda number: following(number)._replace(tokens_total=2_000.0), **dynamic).states == ["firing"]


def test_where_only_means_are_told_they_tell_to_twice_the_longest() -> None:
    def shape(number: int, each: float) -> Told:
        told = following(number)._replace(length_max=None, clip_ratio=None)
        return told._replace(update_actor=20.0 + each * (told.length_mean or 0) / 1000)

    assert heard(lambda number: shape(number, 24)).heard == []
    (fired,) = heard(lambda number: shape(number, 34)).heard
    assert fired.facts["cap_tokens"] == 2 * 1070  # of the eight steps that there were


def test_without_a_cap_nothing_is_foretold() -> None:
    story = Story(shipped("longest_batch_too_big"), run="r")
    assert tell_all(story, 20, lambda number: following(number)._replace(clip_ratio=0.0)).heard == []
    assert len(gpu_of(story).steps) == 20


def test_gpus_that_do_the_same_tell_together_what_none_of_them_tells_alone() -> None:
    def noisy(number: int) -> Told:
        off = 5.0 if number * 5 % 7 > 3 else -5.0
        return following(number)._replace(more={"0": off, "1": -off})

    assert heard(noisy).heard == []
    story = heard(noisy, gpus=2)
    assert {one.labels["gpu"] for one in story.heard if one.state == "firing"} == {"0", "1"}
