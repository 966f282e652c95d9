"""What is left when the rollout engine sleeps: what counts as growth, and what is the noise of a healthy run."""

import random

import pytest
from tests.core.step_story import PHASE_SECONDS, STEP_SECONDS, Told, configure, tell, tell_all
from tests.core.story import GIB, Story, shipped

from oomwatch import wire
from oomwatch.core.conditions.residue import Residue

RULE = Residue()
ROOM = 10.0 * GIB


def holds(*gib: float, room: float = ROOM) -> bool:
    return RULE.holds_for([one * GIB for one in gib], room) is not None


def test_the_public_case_is_seen_at_its_first_leap() -> None:
    assert not holds(4.1, 4.0, 4.2, 4.1)
    assert holds(4.1, 4.0, 4.2, 4.1, 11.6)
    assert holds(4.1, 4.0, 4.2, 4.1, 11.6, 25.0)


@pytest.mark.parametrize("grown", [6.5, 9.0])
def test_a_lesser_leap_has_to_last_two_steps(grown: float) -> None:
    usual = [4.0] * 8
    assert not holds(*usual, grown)
    assert holds(*usual, grown, grown)


def test_one_odd_step_is_forgotten() -> None:
    usual = [4.0] * 8
    assert not holds(*usual, 7.0, 4.0)
    assert not holds(*usual, 7.0, 4.0, 4.1, 4.0)


def test_five_gib_are_much_even_where_much_is_left_anyway() -> None:
    usual = [40.0, 40.5, 39.8, 40.2, 40.1, 39.9]
    assert not holds(*usual, 45.8)
    assert holds(*usual, 45.8, 46.0)


def test_less_than_a_gib_is_no_danger_however_large_its_share() -> None:
    assert not holds(*[0.8] * 10, 1.4, 1.4, 1.4)


def test_a_slow_growth_counts_once_the_end_is_near() -> None:
    slow = [5.0 + 0.1 * step for step in range(30)]
    assert not holds(*slow, room=20.0 * GIB)
    assert holds(*slow, room=5.0 * GIB)


def test_noise_of_healthy_runs_raises_nothing() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        series = [8.0]
        for _ in range(200):
            series.append(8.0 + 0.8 * (series[-1] - 8.0) + dice.gauss(0, 0.3))
        assert not any(holds(*series[max(0, end - 60) : end]) for end in range(1, len(series)))


def test_it_fires_at_the_sleep_line_and_says_how_much() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 8, lambda number: Told(residue=4.1 if number < 8 else 11.6))
    (fired,) = story.heard
    assert (fired.state, fired.at) == ("firing", 7 * STEP_SECONDS + PHASE_SECONDS["rollout"])
    assert fired.labels == {"node": "n", "gpu": "0", "run": "r"}
    assert round(float(fired.facts["grown_bytes"]) / GIB, 1) == 7.5
    assert fired.facts["source"] == "sleep"


def test_what_the_first_update_adds_is_no_growth() -> None:
    """The optimizer's states are made in it: after the first steps, and later where the critic is warmed up alone."""
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 12, lambda number: Told(residue=4.0 if number < 2 else 16.0))
    assert story.heard == []
    story = configure(Story(shipped("sleep_residue_grows"), run="r"), trainer__critic_warmup=6)
    tell_all(story, 16, lambda number: Told(residue=4.0 if number < 7 else 16.0))
    assert story.heard == []


def test_a_leap_in_the_second_and_third_step_is_one_too() -> None:
    """The public case as it was: three sleeps, and then no memory."""
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 3, lambda number: Told(residue=(4.1, 11.6, 25.0)[number - 1]))
    assert story.said == [(2 * STEP_SECONDS + PHASE_SECONDS["rollout"], "sleep_residue_grows", "firing")]


def test_two_equal_steps_up_are_enough_at_the_beginning() -> None:
    assert not holds(45.0, 52.0)
    assert holds(45.0, 52.0, 59.0)
    assert not holds(45.0, 52.0, 54.0)
    assert not holds(45.0, 51.0, 66.0)
    assert not holds(45.0, 44.0, 45.0, 52.0, 45.0)


def test_the_engine_of_another_start_is_not_held_against_the_one_before() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 8, lambda _: Told())
    for number, (pid, gib) in enumerate([(7, 4.0), (7, 4.0), (8, 16.0)], start=9):
        story.event(wire.EngineSleep(gpu="0", still_used_bytes=int(gib * GIB)), pid=pid)
        assert story.heard == []
        tell(story, number, Told())


def test_without_sleep_lines_the_floors_of_the_phases_in_which_it_sleeps_tell() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 9, lambda number: Told(old_log_prob=12.0 if number < 8 else 24.0))
    (fired,) = story.heard
    assert fired.facts["source"] == "floor"


def test_an_engine_that_never_sleeps_leaves_no_residue() -> None:
    story = configure(
        Story(shipped("sleep_residue_grows"), run="r"), actor_rollout_ref__rollout__free_cache_engine=False
    )
    tell_all(story, 9, lambda number: Told(old_log_prob=12.0 if number < 8 else 24.0))
    assert story.heard == []


def test_it_is_over_after_ten_quiet_steps() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 30, lambda number: Told(residue=12.0 if number == 8 else 4.0))
    assert story.states == ["firing", "resolved"]
    assert 17 * STEP_SECONDS < story.heard[1].at < 27 * STEP_SECONDS


def test_a_growth_that_goes_on_slowly_is_one_alert_until_it_is_level() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 60, lambda number: Told(residue=4.0 + (3.0 if number > 8 else 0.0) + 0.08 * max(0, number - 8)))
    assert story.states == ["firing"]
    assert round(float(story.heard[0].facts["usual_bytes"]) / GIB, 1) == 4.0
    tell_all(story, 60, lambda _: Told(residue=11.2), first=61)
    assert story.states == ["firing", "resolved"]


def test_a_restart_ends_it_and_sets_a_new_measure() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 8, lambda number: Told(residue=4.0 if number < 8 else 12.0))
    tell_all(story, 12, lambda _: Told(residue=12.0), first=5)
    assert story.states == ["firing", "resolved"]


def test_when_the_program_has_left_the_card_it_is_over() -> None:
    story = Story(shipped("sleep_residue_grows"), run="r")
    tell_all(story, 8, lambda number: Told(residue=4.0 if number < 8 else 12.0))
    story.wait(180, lambda one: one.used(0.5))
    assert story.states == ["firing", "resolved"]
