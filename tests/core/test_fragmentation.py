"""What torch holds and cannot use: large and growing, on a card that is nearly full."""

import random

from tests.core.step_story import Told, tell_all
from tests.core.story import CARD_BYTES, GIB, Story, shipped

from oomwatch.core.conditions.fragmentation import Fragmentation

FULL = [0.9 * CARD_BYTES]
RULE = Fragmentation()


def growing(from_gib: float, gib_per_step: float, steps: int = 35) -> list[float]:
    return [(from_gib + gib_per_step * step) * GIB for step in range(steps)]


def test_a_slack_that_is_large_and_grows_is_told_with_its_pace() -> None:
    slope = RULE.holds_for(growing(8, 0.2), FULL, CARD_BYTES)
    assert slope is not None
    assert round(slope / GIB, 3) == 0.2


def test_a_small_slack_a_steady_one_and_one_on_an_empty_card_are_not() -> None:
    assert RULE.holds_for(growing(2, 0.15), FULL, CARD_BYTES) is None
    assert RULE.holds_for([20.0 * GIB] * 35, FULL, CARD_BYTES) is None
    assert RULE.holds_for(growing(8, 0.2), [0.7 * CARD_BYTES], CARD_BYTES) is None


def test_what_levels_off_is_let_go() -> None:
    levelled = [(20 - 10 * 2 ** (-step / 4)) * GIB for step in range(40)]
    assert RULE.holds_for(levelled, FULL, CARD_BYTES) is None


def test_noise_raises_nothing() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        slacks = [dice.gauss(16, 1.5) * GIB for _ in range(200)]
        assert all(RULE.holds_for(slacks[max(0, end - 60) : end], FULL, CARD_BYTES) is None for end in range(1, 200))


def test_a_run_whose_slack_grows_is_warned() -> None:
    story = Story(shipped("memory_fragmented"), run="r")
    tell_all(story, 40, lambda number: Told(update_actor=70.0, slack=9 + 0.2 * number))
    (fired,) = story.heard
    assert fired.unit == "ratio"
    assert float(fired.facts["slack_bytes"]) > 0.15 * CARD_BYTES


def test_slack_of_a_sleeping_engine_that_torch_still_counts_is_none() -> None:
    """torch says that it has reserved more than the device has in use."""
    story = Story(shipped("memory_fragmented"), run="r")
    tell_all(story, 40, lambda number: Told(rollout=70.0, update_actor=70.0, slack=9 + 0.2 * number, more={"0": -3.0}))
    assert story.heard == []
