"""A run against its plan: what its phases were expected to hold, by its configuration, and what they hold."""

import pytest
from tests.core.plan_story import ABOVE, AS_PLANNED, BELOW, CONFIG, FULL, MODEL, configured
from tests.core.step_story import Told, gpu_of, tell, tell_all
from tests.core.story import CARD_BYTES, GIB, Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.planned import NoPlan, Plan, at_lengths, learned, plan_of, shape_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.plan.memory import corrected
from oomwatch.plan.models import shape_named

INFO = shipped("plan_exceeded", "info")
UNSIZED: dict[str, wire.ConfigValue] = {"actor_rollout_ref.rollout.name": "hf", "algorithm.adv_estimator": "grpo"}


def run_of(story: Story) -> RunRecord:
    return story.engine.fleet.runs["r"]


def planned_of(story: Story) -> Plan:
    with story.engine.fleet.keeping:  # as the judge asks
        plan = plan_of(run_of(story), CARD_BYTES)
    assert isinstance(plan, Plan)
    return plan


def test_a_phase_above_its_interval_in_two_steps_after_the_third_is_told_with_what_was_expected() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 4, lambda _: ABOVE)
    assert story.heard == []  # three steps warm up, one is one
    (fired,) = tell(story, 5, ABOVE).heard
    assert (fired.state, fired.severity, fired.facts["phase"]) == ("firing", "info", "update_actor")
    expected = planned_of(story).told.phase("update_actor")
    assert expected is not None
    assert fired.value == fired.facts["measured_bytes"] == 45 * GIB
    assert fired.limit == fired.facts["high_bytes"] == expected.high_bytes
    assert (fired.facts["low_bytes"], fired.facts["expected_bytes"]) == (expected.low_bytes, expected.expected_bytes)
    largest = max(expected.parts, key=lambda part: part.bytes)
    assert (fired.facts["part"], fired.facts["part_bytes"]) == (largest.name, largest.bytes)


@pytest.mark.parametrize("told", [AS_PLANNED, BELOW])
def test_a_run_within_its_plan_or_below_it_is_no_news(told: Told) -> None:
    story = configured(Story(shipped("plan_exceeded"), run="r"))
    assert tell_all(story, 20, lambda _: told).heard == []


def test_one_step_above_it_is_none_either() -> None:
    story = configured(Story(INFO, run="r"))
    assert tell_all(story, 20, lambda step: ABOVE if step % 2 else AS_PLANNED).heard == []


def test_it_is_a_warning_only_where_the_card_is_nearly_full() -> None:
    story = configured(Story(shipped("plan_exceeded", "warning"), run="r"))
    assert tell_all(story, 12, lambda _: ABOVE).heard == []
    assert tell_all(story, 2, lambda _: FULL, first=13).states == ["firing"]
    assert story.heard[0].severity == "warning"


def test_a_phase_is_told_once_in_a_start_of_the_run() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 6, lambda _: ABOVE)
    tell_all(story, 14, lambda _: AS_PLANNED, first=7)
    assert story.states == ["firing", "resolved"]
    tell_all(story, 10, lambda _: ABOVE, first=21)
    assert story.states == ["firing", "resolved"]
    tell_all(story, 2, lambda _: ABOVE._replace(old_log_prob=40.0), first=31)
    assert [one.facts["phase"] for one in story.heard if one.state == "firing"] == ["update_actor", "old_log_prob"]


def test_another_start_may_tell_it_again() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 6, lambda _: ABOVE)
    tell_all(story, 6, lambda _: ABOVE)
    assert story.states == ["firing", "resolved", "firing"]


def test_all_phases_above_their_interval_are_one_alert_of_the_worst() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 8, lambda _: ABOVE._replace(old_log_prob=60.0))
    assert [(one.state, one.facts["phase"]) for one in story.heard] == [("firing", "old_log_prob")]


def test_each_gpu_of_the_run_is_held_against_it() -> None:
    story = configured(Story(INFO, run="r", gpus=3))
    tell_all(story, 6, lambda _: AS_PLANNED._replace(more={"1": 15.0}), gpus=3)
    assert [one.labels["gpu"] for one in story.heard] == ["1"]


def test_what_programs_of_others_hold_is_not_the_runs() -> None:
    story = configured(Story(INFO, run="r"))
    for step in range(1, 10):
        tell(story, step, ABOVE, strangers={"0": 10.0})
    assert story.heard == []


def test_cards_that_the_engine_has_for_itself_are_held_against_no_plan() -> None:
    story = configured(Story(INFO, run="r"))
    for step in range(1, 10):
        tell(story, step, ABOVE, roles={"0": "rollout"})
    assert story.heard == []


def test_a_switch_that_wakes_the_engines_cache_may_hold_as_much_as_the_rollout() -> None:
    plan = planned_of(configured(Story(INFO, run="r")))
    rollout = plan.told.phase("rollout")
    assert rollout is not None
    assert plan.high_bytes("update_weights") == rollout.high_bytes


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (wire.Config(values={}, model=MODEL), "config"),
        (wire.Config(values=CONFIG), "model"),
        (wire.Config(values=CONFIG, model={"name": "secret-7b"}), "model"),
        (wire.Config(values=CONFIG, model={"hidden_size": 4096}), "model"),
        (wire.Config(values=UNSIZED, model=MODEL), "sizes"),
        (wire.Config(values=CONFIG | {"actor_rollout_ref.hybrid_engine": False}, model=MODEL), "apart"),
        (wire.Config(values=CONFIG | {"actor_rollout_ref.rollout.nnodes": 1}, model=MODEL), "apart"),
        (wire.Config(values=CONFIG | {"reward_model.enable": True}, model=MODEL), "left_out"),
        (wire.Config(values=CONFIG, model={"name": "Qwen2.5-VL-7B-Instruct"}), "left_out"),
    ],
)
def test_where_no_plan_can_be_made_it_is_said_why(event: wire.Config, why: str) -> None:
    story = Story(INFO, run="r").event(event)
    plan = plan_of(run_of(story), CARD_BYTES)
    assert isinstance(plan, NoPlan)
    assert plan.why == why
    assert tell_all(story, 8, lambda _: FULL).heard == []


def test_a_card_of_unknown_size_has_no_plan() -> None:
    assert plan_of(run_of(configured(Story(INFO, run="r"))), 0) == NoPlan("card")


def test_a_public_name_serves_where_no_sizes_were_read_and_adds_what_sizes_do_not_tell() -> None:
    assert shape_of({"name": "Qwen3-8B-Base"}) == shape_named("Qwen3-8B")
    seeing = {"name": "Qwen2.5-VL-7B-Instruct", **MODEL, "num_hidden_layers": 28, "hidden_size": 3584}
    assert shape_of(seeing) == shape_named("Qwen2.5-VL-7B")
    own = shape_of({"name": "Qwen3-8B", **MODEL, "num_hidden_layers": 30})
    assert own is not None
    assert own.layers == 30


def test_the_plan_is_worked_out_once_for_a_configuration_and_a_card() -> None:
    story = configured(Story(INFO, run="r", gpus=4))
    first = planned_of(story)
    tell_all(story, 5, lambda _: AS_PLANNED, gpus=4)
    configured(story)  # told again: the same
    tell_all(story, 2, lambda _: AS_PLANNED, first=6, gpus=4)
    assert planned_of(story) is first
    assert plan_of(run_of(story), CARD_BYTES // 2) != first
    configured(story, rollout__n=4)
    assert planned_of(story) is not first


def test_who_tells_the_configuration_again_and_knows_no_model_unsays_none() -> None:
    story = configured(Story(INFO, run="r"))
    story.event(wire.Config(values=dict(CONFIG)))
    assert run_of(story).model == MODEL
    story.event(wire.Config(values=CONFIG | {"data.train_batch_size": 32}))
    assert run_of(story).model == {}


def test_steps_teach_by_how_much_the_estimate_is_off_at_the_lengths_that_they_had() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 10, lambda _: AS_PLANNED)
    run, steps = run_of(story), list(gpu_of(story).steps)
    so_far = at_lengths(run, CARD_BYTES, steps)
    taught = learned(story.engine.fleet, run, CARD_BYTES)
    assert so_far is not None
    assert taught is not None
    assert "update_weights" not in taught.factors
    again = corrected(so_far, taught)
    for phase, gib in (("old_log_prob", 28), ("update_actor", 34)):
        found = again.phase(phase)
        assert found is not None
        factor = taught.factors[phase]
        assert found.expected_bytes == pytest.approx(gib * GIB, rel=0.01) or factor in (0.5, 2.0)


def test_the_next_start_is_expected_to_be_as_the_last_one_was() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 10, lambda _: ABOVE._replace(update_actor=38.0))
    before = planned_of(story)
    assert before.expected == before.told
    configured(story, actor__ppo_micro_batch_size_per_gpu=8)
    after = planned_of(story)
    told, expected = after.told.phase("update_actor"), after.expected.phase("update_actor")
    assert told is not None
    assert expected is not None
    assert expected.expected_bytes > told.expected_bytes
    assert after.high_bytes("update_actor") == expected.high_bytes


def test_what_was_learned_makes_no_interval_narrower() -> None:
    story = configured(Story(INFO, run="r"))
    tell_all(story, 10, lambda _: BELOW)
    configured(story, rollout__gpu_memory_utilization=0.61)
    after = planned_of(story)
    told, expected = after.told.phase("update_actor"), after.expected.phase("update_actor")
    assert told is not None
    assert expected is not None
    assert expected.high_bytes < told.high_bytes
    assert after.high_bytes("update_actor") == told.high_bytes


def test_nothing_is_learned_of_a_run_without_steps() -> None:
    fleet = Fleet()
    assert learned(fleet, RunRecord("r", 0.0, fleet.keeping), CARD_BYTES) is None


@pytest.mark.parametrize(
    ("when", "mistake"),
    [
        ("{kind: plan, steps: 0}", "steps must be from 1 to 30"),
        ("{kind: plan, peak_above: 90}", "peak_above is a share"),
    ],
)
def test_parameters_that_nobody_can_mean_are_mistakes(when: str, mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        rules_of(f"    when: {when}\n")
