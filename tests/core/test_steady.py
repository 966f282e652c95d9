"""Tight but steady: a packed card is told once, then lowered to information, and told again with a new peak."""

import pytest
from tests.core.story import Story, rules_of, shipped
from tests.server.pool_story import ChannelStory

from oomwatch import wire
from oomwatch.core.steady import is_steady

TIGHT = shipped("gpu_memory_high")
STEP_SECONDS = 40


def train(story: Story, first: int, last: int, peak_gib: float) -> Story:
    """Steps whose rollout fills the card to `peak_gib` for half of each, and an update that needs half of that."""
    for number in range(first, last + 1):
        story.wait(STEP_SECONDS // 2, lambda one: one.used(peak_gib))
        story.wait(STEP_SECONDS // 2, lambda one: one.used(peak_gib / 2))
        story.event(wire.Step(step=number, step_seconds=STEP_SECONDS, rollout_seconds=STEP_SECONDS / 2))
    return story


def told(story: Story) -> list[tuple[str, str, str]]:
    return [(one.change, one.state, one.severity) for one in story.heard]


def test_a_card_at_the_same_peak_for_ten_steps_is_lowered_to_information() -> None:
    story = train(Story(TIGHT, run="r"), 1, 20, 72.0)
    assert told(story) == [("state", "firing", "warning"), ("severity", "firing", "info")]
    assert [one.lowered_from for one in story.heard] == [None, "warning"]
    assert len({one.id for one in story.heard}) == 1


def test_a_new_peak_raises_it_again_at_once() -> None:
    story = train(Story(TIGHT, run="r"), 1, 20, 72.0)
    before = len(story.heard)
    story.used(74.0)
    assert told(story)[before:] == [("severity", "firing", "warning")]


def test_a_peak_that_creeps_up_is_not_steady() -> None:
    story = Story(TIGHT, run="r")
    for number in range(1, 25):
        train(story, number, number, 70.0 + 0.3 * number)
    assert told(story) == [("state", "firing", "warning")]


def test_a_lowered_alert_that_ends_says_at_which_severity_it_was_told() -> None:
    story = train(Story(TIGHT, run="r"), 1, 20, 72.0)
    story.wait(300, lambda one: one.used(10.0))
    assert (story.heard[-1].state, story.heard[-1].lowered_from) == ("resolved", "warning")


def test_without_steps_an_hour_without_a_new_peak_is_steady() -> None:
    story = Story(TIGHT)
    story.wait(4000, lambda one: one.used(72.0))
    assert told(story) == [("state", "firing", "warning"), ("severity", "firing", "info")]
    assert 3600 <= story.heard[1].at <= 4000


def test_a_height_that_was_reached_before_is_told_to_nobody_again() -> None:
    story = train(Story(TIGHT, run="r"), 1, 8, 72.0)
    train(story, 9, 40, 40.0)
    train(story, 41, 42, 72.0)
    story.wait(300, lambda one: one.used(10.0))
    assert told(story)[2:] == [("state", "firing", "info"), ("state", "resolved", "info")]
    assert [one.quiet for one in story.heard] == [False, False, True, True]
    assert what_people_hear(story) == ["firing 0", "resolved 0"]


def what_people_hear(story: Story) -> list[str]:
    channel = ChannelStory()
    said: list[str] = []
    for number, one in enumerate(story.heard):
        channel.hear(100.0 * number, one)
        said += channel.said(100.0 * number + 50)
    return said


def test_what_nobody_was_told_of_is_told_once_it_is_raised() -> None:
    story = train(Story(TIGHT, run="r"), 1, 8, 72.0)
    train(story, 9, 40, 40.0)
    train(story, 41, 42, 72.0)
    story.used(76.0).wait(300, lambda one: one.used(10.0))
    assert told(story)[3:] == [("severity", "firing", "warning"), ("state", "resolved", "warning")]
    assert what_people_hear(story) == ["firing 0", "resolved 0"] * 2


def test_a_restart_does_not_raise_what_was_lowered() -> None:
    story = train(Story(TIGHT, run="r"), 1, 20, 72.0)
    again = Story(TIGHT, run="r")
    again.now = story.now
    assert again.engine.restore([story.heard[-1]], again.now) == []
    train(again, 21, 22, 72.0)
    assert again.heard == []
    again.used(75.0)
    assert told(again) == [("severity", "firing", "warning")]


def test_other_rules_are_never_lowered() -> None:
    story = Story(
        rules_of("    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n    keep_firing_for: 2m\n"), run="r"
    )
    train(story, 1, 20, 72.0)
    assert told(story) == [("state", "firing", "warning")]


@pytest.mark.parametrize(
    ("peaks", "now", "steady"),
    [
        ([0.9] * 11, 0.9, True),
        ([0.9] * 11, 0.905, True),
        ([0.9] * 11, 0.92, False),
        ([0.9] * 10, 0.9, None),
        ([0.95] + [0.5] * 20, 0.95, True),
        ([0.9] * 5, 0.9, None),
        ([0.9] * 5, 0.95, False),
        ([0.90] * 10 + [0.92] * 10, 0.92, False),
        ([0.92] * 10 + [0.90] * 10, 0.90, True),
        ([0.90 + 0.002 * number for number in range(20)], 0.94, False),
        ([], 0.9, None),
    ],
)
def test_steady_is_no_new_height_in_the_last_ten(peaks: list[float], now: float, steady: bool | None) -> None:
    assert is_steady(peaks, now, count=10) is steady
