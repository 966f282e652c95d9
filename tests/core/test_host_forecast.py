"""When host memory will be full: what is told of, what is not, and what is said with it."""

import math
import random
from collections.abc import Sequence

import pytest
from tests.core.host_story import READ_SECONDS, HostStory, number
from tests.core.story import GIB, rules_of, shipped

from oomwatch.core.conditions.host_forecast import HostForecast
from oomwatch.core.subject import Subject
from oomwatch.rulefile import RuleFileError

WARNING = shipped("host_memory_forecast", "warning")
LEAK = [600 + 4 * step for step in range(1, 100)]  # GiB of 1000; Ray kills at 950, in step 88


def noisy(peaks: Sequence[float], spread: float, seed: int = 1) -> list[float]:
    dice = random.Random(seed)
    return [peak + dice.gauss(0, spread) for peak in peaks]


def fired_at_step(story: HostStory) -> int:
    """The step in which the first warning came."""
    return math.ceil(next(one.at for one in story.heard if one.state == "firing") / 150)


# ------------------------------------------------------------ what is told


def test_a_leak_is_told_of_more_than_thirty_steps_ahead() -> None:
    story = HostStory(WARNING).steps(LEAK[:60])
    assert story.states == ["firing"]
    assert 45 <= fired_at_step(story) <= 55
    told = story.heard[0]
    assert (told.unit, told.facts["limited_by"], told.facts["limit_bytes"]) == ("seconds", "machine", 1000 * GIB)
    assert told.facts["eta_steps"] == pytest.approx(88 - fired_at_step(story), abs=2)
    assert told.value == told.facts["eta_seconds"] == pytest.approx(150 * (88 - fired_at_step(story)), abs=300)
    assert told.facts["growth_bytes_per_hour"] == pytest.approx(4 * 24 * GIB, rel=0.02)


def test_a_leak_among_noise_is_told_of_and_does_not_flap() -> None:
    story = HostStory(WARNING).steps(noisy(LEAK[:85], 5.0))
    assert story.states == ["firing"]
    assert fired_at_step(story) < 60


def test_where_no_steps_are_told_it_is_seen_in_spans_of_five_minutes() -> None:
    story = HostStory(WARNING, run=None).spans([600 + 6 * span for span in range(60)])
    assert story.states == ["firing"]
    assert "eta_steps" not in story.heard[0].facts
    assert number(story.heard[0], "eta_seconds") <= 3600


def test_a_run_whose_steps_take_seconds_is_seen_as_well() -> None:
    story = HostStory(WARNING).steps([700 + 4 * step for step in range(60)], step_seconds=20)
    assert story.states == ["firing"]


def test_the_container_counts_where_it_is_the_tighter_one() -> None:
    story = HostStory(WARNING, container_gib=500)
    for step in range(1, 60):
        for _ in range(15):
            story.read(500 + 2 * step, container=320 + 2 * step)
        story.step(step, step_seconds=150.0)
    assert story.states == ["firing"]
    assert (story.heard[0].facts["limited_by"], story.heard[0].facts["limit_bytes"]) == ("container", 500 * GIB)


def test_checkpoints_that_spike_bring_the_end_nearer() -> None:
    plain = HostStory(WARNING).steps(LEAK[:70])
    spiked = [peak + (100 if step % 20 == 0 else 0) for step, peak in enumerate(LEAK[:62], start=1)]
    with_spikes = HostStory(WARNING).steps(spiked)
    assert with_spikes.states == ["firing"]
    assert fired_at_step(with_spikes) < fired_at_step(plain) - 10


def test_when_it_is_near_it_is_critical() -> None:
    story = HostStory(shipped("host_memory_forecast")).steps(LEAK[:86])
    assert [(one.severity, one.state) for one in story.heard if one.change == "state"] == [
        ("warning", "firing"),
        ("critical", "firing"),
    ]
    assert number(story.heard[1], "eta_seconds") <= 900


# ------------------------------------------------------------ what is not


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_a_host_that_is_nearly_full_and_stays_so_raises_nothing(spread: float) -> None:
    assert HostStory(WARNING).steps(noisy([920.0] * 200, spread)).heard == []


def test_a_cache_that_fills_up_and_levels_off_raises_nothing() -> None:
    peaks = [600 + 250 * (1 - math.exp(-step / 15)) for step in range(1, 80)]
    assert HostStory(WARNING).steps(noisy(peaks, 1.0)).heard == []


def test_a_single_jump_is_no_growth() -> None:
    assert HostStory(WARNING).steps(noisy([700.0] * 30 + [800.0] * 40, 2.0)).heard == []


def test_a_leak_that_will_take_days_is_not_told_of_yet() -> None:
    assert HostStory(WARNING).steps([400 + 0.5 * step for step in range(100)]).heard == []


def test_before_twelve_steps_nothing_is_told() -> None:
    assert HostStory(WARNING).steps([880 + 5 * step for step in range(12)]).heard == []


def test_where_the_growth_ends_so_does_the_alert() -> None:
    story = HostStory(WARNING).steps(LEAK[:60]).steps(noisy([LEAK[59]] * 40, 1.0))
    assert story.states == ["firing", "resolved"]


def test_where_what_grew_is_given_back_the_alert_ends_sooner() -> None:
    story = HostStory(WARNING).steps(LEAK[:60]).steps([600.0] * 12)
    assert story.states == ["firing", "resolved"]


def test_what_was_before_a_restart_of_the_run_does_not_count() -> None:
    story = HostStory(WARNING).steps(LEAK[:40])
    story._steps_told = 0
    assert story.steps(noisy([800.0] * 40, 0.5)).heard == []


# ------------------------------------------------------------ whose growth


def test_the_process_that_grows_is_named_and_not_the_largest() -> None:
    story = HostStory(WARNING)
    for step in range(1, 60):
        for _ in range(15):
            story.read(640 + 4 * step, processes={"ray::WorkerDict": 300, "ray::TaskRunner": 50 + 4 * step})
        story.step(step, step_seconds=150.0)
    facts = story.heard[0].facts
    assert (facts["process"], facts["pid"]) == ("ray::TaskRunner", 2)
    assert number(story.heard[0], "process_growth_bytes") > 50 * GIB


def test_a_process_with_little_of_the_growth_is_not_blamed() -> None:
    story = HostStory(WARNING)
    for step in range(1, 60):
        for _ in range(15):
            story.read(640 + 4 * step, processes={"systemd": 1 + 0.1 * step})
        story.step(step, step_seconds=150.0)
    assert "process" not in story.heard[0].facts


# ------------------------------------------------------------ judging


def test_an_agent_that_is_silent_leaves_it_open() -> None:
    story = HostStory(WARNING).steps(LEAK[:60])
    story.wait(3000)
    assert story.states == ["firing"]


def test_steps_that_come_no_more_give_way_to_spans_of_time() -> None:
    story = HostStory(WARNING).steps(LEAK[:60])
    story.spans([LEAK[59]] * 40)
    assert story.states == ["firing", "resolved"]


def test_between_two_steps_nothing_is_worked_out_again() -> None:
    story = HostStory(WARNING).steps(LEAK[:60])
    node = story.engine.fleet.nodes["n"]
    before = node.memo.last(("filling", "machine", HostForecast().until * 1000 * GIB))
    assert before is not None
    story.read(600)
    assert node.memo.last(("filling", "machine", HostForecast().until * 1000 * GIB)) is before


def test_a_clock_that_is_set_takes_what_was_seen_along() -> None:
    story = HostStory(WARNING).steps(LEAK[:40])
    story.engine.clock_jumped(-1000.0)
    story.now -= 1000
    story.steps(LEAK[40:60])
    assert story.states == ["firing"]


def test_without_a_reading_there_is_no_telling() -> None:
    story = HostStory(WARNING)
    story.now += 10 * READ_SECONDS
    assert HostForecast().judge(story.engine.fleet, Subject("node", "n"), story.now).state == "unknown"
    assert HostForecast().judge(story.engine.fleet, Subject("node", "other"), story.now).state == "unknown"


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [("until: 950", "no share"), ("within: 0s", "longer than 0s"), ("within_steps: -1", "cannot be negative")],
)
def test_bounds_that_say_nothing_are_refused(keys: str, mistake: str) -> None:
    with pytest.raises(RuleFileError, match=mistake):
        rules_of(f"    when: {{kind: host_forecast, {keys}}}\n")
