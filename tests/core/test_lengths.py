"""Responses that get longer."""

import random

from tests.core.step_story import MAX_RESPONSE, Told, configure, tell_all
from tests.core.story import Story, shipped

from oomwatch.core.conditions.lengths import Lengths

RULE = Lengths()


def test_means_that_drift_and_still_do_are_told_with_their_pace() -> None:
    tokens, clipped = RULE.holds_for([1000.0 + 10 * step for step in range(30)], [])
    assert tokens == 10.0
    assert clipped is None


def test_means_that_have_levelled_off_or_drift_by_little_are_not() -> None:
    levelled = [1000.0 + 10 * min(step, 25) for step in range(45)]
    assert RULE.holds_for(levelled, []) == (None, None)
    assert RULE.holds_for([1000.0 + 2 * step for step in range(40)], []) == (None, None)


def test_a_share_of_clipped_responses_that_rises_is_told() -> None:
    assert RULE.holds_for([], [0.002 * step for step in range(40)])[1] is not None
    assert RULE.holds_for([], [0.0] * 40)[1] is None


def test_noise_raises_nothing() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        means = [dice.gauss(1000, 50) for _ in range(200)]
        assert all(RULE.holds_for(means[max(0, end - 60) : end], [])[0] is None for end in range(1, 200))


def test_a_run_says_when_its_responses_get_to_the_cap() -> None:
    story = configure(Story(shipped("response_length_drift"), run="r"), data__max_response_length=2048)
    tell_all(story, 34, lambda number: Told(length_mean=800.0 + 10 * number, clip_ratio=0.0))
    (fired,) = story.heard
    assert fired.labels == {"run": "r"}
    assert fired.severity == "info"
    assert fired.facts["slope_tokens"] == 10.0
    assert fired.facts["eta_steps"] == 92
    assert MAX_RESPONSE in story.engine.fleet.runs["r"].config
