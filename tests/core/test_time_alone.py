"""What the clock finds as it was judged last is not worked out again, and nothing is said otherwise for it."""

import random
from collections.abc import Iterator

import pytest
from tests.core.story import CARD_BYTES, GIB, Story, rules_of

from oomwatch import wire
from oomwatch.core.conditions.threshold import Threshold
from oomwatch.core.fleet import Fleet
from oomwatch.core.rule import Rule
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import Verdict
from oomwatch.units import Quantity

FULL_GIB = 76.0
asked_at: list[float] = []


class Counting(Threshold, frozen=True, kw_only=True, tag="counting"):
    """Notes when it is asked."""

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        asked_at.append(now)
        return super().judge(fleet, subject, now)


@pytest.fixture(autouse=True)
def nothing_asked() -> Iterator[None]:
    yield
    asked_at.clear()


def counting(for_seconds: float = 0.0) -> tuple[Rule, ...]:
    full = Counting(metric="gpu_used_ratio", above=Quantity(0.9))
    return (Rule(alert="it", severity="warning", when=(full,), for_seconds=for_seconds),)


def between(story: Story, seconds: float) -> Story:
    """A reading that comes between two seconds of the grid, and then these."""
    story.now += 0.5
    story.used(FULL_GIB)
    story.now -= 0.5
    asked_at.clear()
    return story.wait(seconds)


def test_an_alert_is_not_judged_by_the_clock_while_its_last_reading_stands() -> None:
    story = between(Story(counting()).wait(1), 5)
    assert story.states == ["firing"]
    assert asked_at == []


def test_an_alert_is_judged_by_the_clock_once_its_last_reading_is_too_old() -> None:
    story = between(Story(counting()).wait(1), 60)
    assert asked_at
    assert [episode.is_stale for episode in story.engine.episodes()] == [True]


def test_an_alert_that_is_to_fire_when_its_time_is_complete_is_judged_by_the_clock_then() -> None:
    story = between(Story(counting(for_seconds=3)).wait(1), 5)
    assert story.said == [(5.0, "it", "firing")]
    assert asked_at == [5.0]


ONE = """
    when: {kind: threshold, metric: gpu_used_ratio, above: 90%}
    for: 7s
    keep_firing_for: 5s
"""
# The same, and a condition that is never met: a rule of several is judged at every second.
SEVERAL = """
    when:
      - {kind: threshold, metric: gpu_used_ratio, above: 90%}
      - {kind: threshold, metric: gpu_used_bytes, above: 999GiB}
    for: 7s
    keep_firing_for: 5s
"""


@pytest.mark.parametrize("seed", range(24))
def test_what_is_said_is_the_same_as_if_every_second_were_judged(seed: int) -> None:
    one, several = Story(rules_of(ONE)), Story(rules_of(SEVERAL))
    tell(one, random.Random(seed))
    tell(several, random.Random(seed))
    assert one.heard == several.heard
    assert sums(one) == sums(several)


def test_the_stories_that_are_compared_have_alerts() -> None:
    stories = [Story(rules_of(ONE)) for _ in range(24)]
    for seed, story in enumerate(stories):
        tell(story, random.Random(seed))
    states = [state for story in stories for state in story.states]
    assert states.count("firing") > 24
    assert states.count("resolved") > 8


def tell(story: Story, chance: random.Random) -> None:
    """Five minutes of readings that come when they come, full, not full, none for a while, or old ones."""
    is_full = silent_until = 0.0
    for _ in range(300):
        second = story.now
        if chance.random() < 0.05:
            is_full = chance.choice((0.0, 1.0))
        if chance.random() < 0.01:
            silent_until = second + chance.uniform(5, 60)
        if second >= silent_until:
            story.now = second + chance.choice((0.0, chance.random()))
            age = chance.choice((0.0, 0.0, chance.uniform(0, 40)))
            used = wire.GpuSample(gpu="0", used_bytes=int(FULL_GIB * GIB if is_full else CARD_BYTES / 2))
            story.sample(used, at=story.now - age)
            story.now = second
        story.wait(1)


def sums(story: Story) -> list[tuple[float, float, float, str, float]]:
    """What the judgements of each open episode add up to."""
    return [
        (one.active_seconds, one.quiet_seconds, one.judged_at, one.state_before, one.verdict_at)
        for one in story.engine.episodes()
    ]
