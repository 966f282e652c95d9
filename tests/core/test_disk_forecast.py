"""When the disk that Ray spills to, or /dev/shm, will be full."""

import math

import pytest
from tests.core.host_story import FOLDER, HostStory, number
from tests.core.story import GIB, rules_of, shipped

from oomwatch.rulefile import RuleFileError

WARNING = shipped("disk_forecast", "warning")


def told(story: HostStory, steps: int, *, disk: float = 900.0, by: float = 0.0, shm: float = 5.0) -> HostStory:
    """Steps of 150 s, in each of which the disk holds more by so much."""
    for step in range(1, steps + 1):
        for _ in range(15):
            story.read(300, disk=disk + by * step, shm=shm)
        story.step(step, step_seconds=150.0)
    return story


def test_a_disk_that_fills_up_is_told_of_before_ray_stops_spilling() -> None:
    story = told(HostStory(WARNING), 60, disk=1400, by=6.5)
    assert story.states == ["firing"]
    facts = story.heard[0].facts
    assert (facts["path"], facts["limit_bytes"], facts["until_ratio"]) == (FOLDER, 2000 * GIB, 0.95)
    left_steps = (1900 - number(story.heard[0], "used_bytes") / GIB) / 6.5
    assert facts["eta_steps"] == pytest.approx(left_steps, abs=2)


def test_shared_memory_counts_up_to_its_end() -> None:
    story = HostStory(WARNING)
    for step in range(1, 60):
        for _ in range(15):
            story.read(300, shm=30 + step)
        story.step(step, step_seconds=150.0)
    assert story.states == ["firing"]
    assert (story.heard[0].facts["path"], story.heard[0].facts["until_ratio"]) == ("/dev/shm", 1.0)  # noqa: S108


def test_a_disk_that_is_full_already_needs_no_trend() -> None:
    story = HostStory(WARNING).read(300, disk=1950)
    assert story.states == ["firing"]
    assert story.heard[0].facts["path"] == FOLDER


def test_a_disk_that_is_cleaned_up_now_and_then_raises_nothing() -> None:
    story = HostStory(WARNING)
    for step in range(1, 120):
        for _ in range(15):
            story.read(300, disk=1600 + 5 * (step % 10), shm=5)
        story.step(step, step_seconds=150.0)
    assert story.heard == []


def test_a_store_that_fills_its_share_of_shared_memory_and_stays_there_raises_nothing() -> None:
    story = HostStory(WARNING)
    for step in range(1, 80):
        for _ in range(15):
            story.read(300, shm=90 * (1 - math.exp(-step / 10)))
        story.step(step, step_seconds=150.0)
    assert story.heard == []


def test_one_of_them_alone_can_be_watched() -> None:
    rules = rules_of("    when: {kind: disk_forecast, of: [shm]}\n")
    assert told(HostStory(rules), 60, disk=1400, by=6.5).heard == []


def test_where_neither_is_read_there_is_no_telling() -> None:
    story = HostStory(rules_of("    when: {kind: disk_forecast}\n"))
    story.read(300)
    condition = story.engine.rules.rules[0].when[0]
    subject = story.engine.fleet.nodes["n"].subject
    assert condition.judge(story.engine.fleet, subject, story.now).state == "unknown"


@pytest.mark.parametrize(
    ("keys", "mistake"), [("of: []", "must name"), ("until: 95", "no share"), ("of: [disk]", "spill_disk")]
)
def test_bounds_that_say_nothing_are_refused(keys: str, mistake: str) -> None:
    with pytest.raises(RuleFileError, match=mistake):
        rules_of(f"    when: {{kind: disk_forecast, {keys}}}\n")
