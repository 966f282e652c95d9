"""One rank against its peers."""

import random

from tests.core.step_story import Told, configure, tell, tell_all
from tests.core.story import CARD_BYTES, GIB, Story, shipped

from oomwatch.core.conditions.imbalance import Imbalance

RULE = Imbalance()


def holds(gib: float, peers: list[float], steps: int = 3) -> bool:
    group = [one * GIB for one in peers]
    return RULE.holds_for([gib * GIB] * steps, [group] * steps, CARD_BYTES)


def test_a_rank_far_above_its_peers_in_three_steps_sticks_out() -> None:
    assert holds(75, [58, 59, 60, 58, 57, 59, 60])
    assert not holds(75, [58, 59, 60, 58, 57, 59, 60], steps=2)


def test_a_rank_sticks_out_of_no_group_that_is_scattered_itself() -> None:
    assert not holds(75, [40, 72, 58, 70, 45, 52, 66])


def test_two_ranks_are_enough_and_one_is_not() -> None:
    assert holds(75, [58])
    assert not holds(75, [])


def test_a_card_with_room_is_no_danger() -> None:
    assert not holds(50, [20, 21, 20, 19])


def test_ranks_that_differ_as_usual_raise_nothing() -> None:
    dice = random.Random(1)
    for _ in range(500):
        rows = [[dice.gauss(68, 3) * GIB for _ in range(8)] for _ in range(3)]
        assert not RULE.holds_for([row[0] for row in rows], [row[1:] for row in rows], CARD_BYTES)


def test_a_run_is_told_of_its_fullest_rank() -> None:
    story = Story(shipped("rank_imbalance"), gpus=4, run="r")
    tell_all(story, 8, lambda _: Told(more={"2": 16.0}), gpus=4)
    (fired,) = story.heard
    assert fired.labels["gpu"] == "2"
    assert (fired.facts["peers"], fired.facts["role"], fired.facts["rank"]) == (3, "actor", 2)
    assert float(fired.facts["excess_bytes"]) == 16 * GIB


def test_gpus_of_another_role_are_no_peers() -> None:
    story = Story(shipped("rank_imbalance"), gpus=5, run="r")
    for number in range(1, 9):
        tell(story, number, Told(more={"4": 16.0}), gpus=5, roles={"4": "reward"})
    assert story.heard == []


def test_what_a_program_of_others_has_on_the_card_does_not_count() -> None:
    story = Story(shipped("rank_imbalance"), gpus=4, run="r")
    for number in range(1, 9):
        tell(story, number, Told(more={"2": 16.0}), gpus=4, strangers={"2": 15.0})
    assert story.heard == []


def test_the_stages_of_a_pipeline_differ_by_nature() -> None:
    key = "actor_rollout_ref__actor__megatron__pipeline_model_parallel_size"
    story = configure(Story(shipped("rank_imbalance"), gpus=4, run="r"), **{key: 2})
    assert tell_all(story, 8, lambda _: Told(more={"2": 16.0}), gpus=4).heard == []
