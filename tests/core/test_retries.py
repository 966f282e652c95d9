"""Retries of the allocator: twice in three steps is no accident."""

import pytest
from tests.core.step_story import Told, tell_all
from tests.core.story import Story, shipped

from oomwatch.core.conditions.retries import Retries


@pytest.mark.parametrize(
    ("retries", "held"),
    [([], False), ([3], False), ([0, 5, 0], False), ([1, 0, 2], True), ([1, 1, 0, 0], False), ([0, 0, 4, 1], True)],
)
def test_two_of_the_last_three_steps_count(retries: list[int], held: bool) -> None:
    assert Retries().holds_for(retries, [0.95], 1.0) is held


def test_retries_of_a_running_trainer_are_told_with_their_number() -> None:
    story = Story(shipped("allocator_retries"), run="r")
    tell_all(story, 10, lambda number: Told(update_actor=76.0, retries_total=0 if number < 8 else 3 * (number - 7)))
    (fired,) = story.heard
    assert fired.value == 6.0
    assert (fired.facts["steps"], fired.facts["of_steps"], fired.facts["step"]) == (2, 3, 9)


def test_retries_while_it_warms_up_are_none() -> None:
    story = Story(shipped("allocator_retries"), run="r")
    tell_all(story, 10, lambda number: Told(retries_total=min(number, 3)))
    assert story.heard == []


def test_retries_on_a_card_with_room_are_an_accident_of_sizes() -> None:
    story = Story(shipped("allocator_retries"), run="r")
    assert tell_all(story, 12, lambda number: Told(retries_total=number)).heard == []


def test_without_a_probe_nothing_is_said() -> None:
    assert tell_all(Story(shipped("allocator_retries"), run="r"), 8, lambda _: Told()).heard == []
