"""Whether the longest batch that is allowed would fit, told from the shorter ones."""

import random
from collections.abc import Callable

import pytest
from tests.core.step_story import Told, configure, gpu_of, tell_all
from tests.core.story import CARD_BYTES, GIB, Story, shipped

from oomwatch.core.conditions.worst_case import Point, WorstCase

RULE = WorstCase()
CAP = 8192.0


def points(at_cap: float, steps: int = 20, spread: float = 0.005, mean: float = 3000.0, seed: int = 1) -> list[Point]:
    """Lengths around a mean, and peaks that would be that share of the card at the cap."""
    dice = random.Random(seed)
    slope = (at_cap - 0.4) / CAP
    lengths = [min(CAP, dice.gauss(mean, 0.2 * mean)) for _ in range(steps)]
    return [(length, (0.4 + slope * length + dice.gauss(0, spread)) * CARD_BYTES) for length in lengths]


def test_what_would_not_fit_is_seen_from_shorter_batches() -> None:
    line = RULE.holds_for(points(1.2), CAP, CARD_BYTES)
    assert line is not None
    assert 1.1 < line.at(CAP) / CARD_BYTES < 1.3


@pytest.mark.parametrize("at_cap", [0.6, 0.9, 0.985])
def test_what_fits_exactly_is_left_alone(at_cap: float) -> None:
    for seed in range(10):
        run = points(at_cap, steps=120, seed=seed)
        assert all(RULE.holds_for(run[:end], CAP, CARD_BYTES) is None for end in range(1, 121))


def test_lengths_that_hardly_differ_say_nothing_of_longer_ones() -> None:
    steady = [(3000.0 + step, (0.5 + 0.01 * step) * CARD_BYTES) for step in range(20)]
    assert RULE.holds_for(steady, CAP, CARD_BYTES) is None


def test_few_steps_and_peaks_that_follow_no_length_say_nothing() -> None:
    assert RULE.holds_for(points(1.2, steps=7), CAP, CARD_BYTES) is None
    dice = random.Random(1)
    unrelated = [(dice.uniform(1000, 5000), dice.gauss(0.8, 0.02) * CARD_BYTES) for _ in range(40)]
    assert RULE.holds_for(unrelated, CAP, CARD_BYTES) is None


def growing_with_length(number: int) -> Told:
    """10 GiB and 8 more for each thousand tokens: 75 GiB at the cap of 8,192, without the spread of lengths."""
    length = 1000.0 + 150 * (number * 7 % 11)
    return Told(update_actor=20.0 + 8 * length / 1000, length_max=length, length_mean=length / 2)


def told(story: Story, shape: Callable[[int], Told], steps: int = 20) -> Story:
    return tell_all(story, steps, shape)


def test_a_run_is_told_the_phase_and_what_is_missing() -> None:
    story = configure(Story(shipped("longest_batch_too_big"), run="r"), data__max_response_length=8192)
    told(story, growing_with_length)
    (fired,) = story.heard
    assert fired.facts["phase"] == "update_actor"
    assert round(float(fired.facts["predicted_bytes"]) / GIB, 1) == 85.5
    assert round(float(fired.facts["short_bytes"]) / GIB, 1) == 5.5
    assert (fired.facts["cap_tokens"], fired.facts["length_max_tokens"]) == (8192, 2350.0)  # by then


def test_a_shorter_cap_fits() -> None:
    story = configure(Story(shipped("longest_batch_too_big"), run="r"), data__max_response_length=6144)
    assert told(story, growing_with_length).heard == []


def test_batches_bounded_by_their_tokens_grow_no_more_once_they_are_full() -> None:
    keys: dict[str, int | bool] = {
        "data__max_response_length": 8192,
        "trainer__nnodes": 1,
        "trainer__n_gpus_per_node": 8,
        "actor_rollout_ref__actor__use_dynamic_bsz": True,
        "actor_rollout_ref__actor__ppo_max_token_len_per_gpu": 16384,
    }
    story = configure(Story(shipped("longest_batch_too_big"), run="r"), **keys)
    told(story, lambda number: growing_with_length(number)._replace(tokens_total=8 * 100_000.0))
    assert story.heard == []
    story = configure(Story(shipped("longest_batch_too_big"), run="r"), **keys)
    told(story, lambda number: growing_with_length(number)._replace(tokens_total=8 * 2_000.0))
    assert story.states == ["firing"]


def test_a_run_that_has_had_its_longest_batch_has_shown_the_worst_case() -> None:
    story = configure(Story(shipped("longest_batch_too_big"), run="r"), data__max_response_length=2500)
    told(story, lambda number: growing_with_length(number)._replace(update_actor=60.0 + number * 7 % 11))
    assert story.heard == []


def test_where_only_means_are_told_they_tell_to_twice_the_longest() -> None:
    def shape(number: int) -> Told:
        told = growing_with_length(number)
        return told._replace(length_mean=told.length_max, length_max=None)

    story = configure(Story(shipped("longest_batch_too_big"), run="r"), data__max_response_length=8192)
    assert tell_all(story, 20, shape).heard == []
    story = configure(Story(shipped("longest_batch_too_big"), run="r"), data__max_response_length=8192)
    tell_all(story, 20, lambda number: shape(number)._replace(update_actor=shape(number).update_actor * 1.6))
    (fired,) = story.heard
    assert fired.facts["cap_tokens"] == 4700  # twice the longest mean by then


def test_without_a_cap_nothing_is_foretold() -> None:
    story = Story(shipped("longest_batch_too_big"), run="r")
    assert told(story, growing_with_length).heard == []
    assert len(gpu_of(story).steps) == 20
