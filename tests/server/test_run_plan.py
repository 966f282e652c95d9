"""What the page shows of a run and its plan: each phase as it was expected, as it was, and what follows from that."""

import time
from pathlib import Path

import pytest
from tests.core.plan_story import ABOVE, AS_PLANNED, BELOW, CONFIG, MODEL, configured
from tests.core.step_story import tell_all
from tests.core.story import CARD_BYTES, GIB, Story
from tests.server.house import hello
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.web.planned import known_of, plan_of_run
from oomwatch.web.planrows import PlannedPhase, PlanOfRun


def plan(story: Story) -> PlanOfRun:
    fleet = story.engine.fleet
    return plan_of_run(known_of(fleet, fleet.runs["r"]))


def phase(told: PlanOfRun, name: str) -> PlannedPhase:
    return next(one for one in told.phases if one.phase == name)


def test_before_the_first_step_the_estimate_alone_is_told() -> None:
    told = plan(tell_all(configured(Story((), run="r")), 1, lambda _: AS_PLANNED))
    assert (told.why, told.capacity_bytes, told.verdict, told.peak_phase) == (None, CARD_BYTES, "fits", "rollout")
    assert [one.phase for one in told.phases] == ["rollout", "old_log_prob", "update_actor", "update_weights"]
    update = phase(told, "update_actor")
    assert update.low_bytes < update.expected_bytes < update.high_bytes
    assert (update.measured_bytes, update.stands, update.error_ratio, update.next_bytes) == (None, None, None, None)


def test_beside_the_estimate_stands_the_highest_peak_of_all_gpus_after_the_third_step() -> None:
    story = configured(Story((), run="r", gpus=2))
    shapes = {1: ABOVE, 5: AS_PLANNED._replace(update_actor=36.0, more={"1": 2.0})}
    told = plan(tell_all(story, 8, lambda step: shapes.get(step, AS_PLANNED), gpus=2))
    update = phase(told, "update_actor")
    assert (update.measured_bytes, update.stands) == (38 * GIB, "within")
    assert update.at_lengths_bytes is not None
    assert update.error_ratio == pytest.approx(update.at_lengths_bytes / (38 * GIB) - 1)
    assert update.factor is not None
    assert update.next_bytes is not None
    assert told.length_tokens == pytest.approx(500.0)
    assert told.parameters == pytest.approx(8.19e9, rel=0.01)


def test_a_phase_outside_of_its_interval_says_on_which_side() -> None:
    stands = {
        step: phase(plan(tell_all(configured(Story((), run="r")), 6, lambda _, one=one: one)), "update_actor").stands  # type: ignore[misc]
        for step, one in (("above", ABOVE), ("below", BELOW))
    }
    assert stands == {"above": "above", "below": "below"}


def test_the_switch_is_held_against_the_rollouts_interval_and_has_no_error() -> None:
    switch = phase(plan(tell_all(configured(Story((), run="r")), 6, lambda _: AS_PLANNED)), "update_weights")
    assert switch.high_bytes == phase(plan(configured(Story((), run="r"))), "rollout").high_bytes
    assert switch.at_lengths_bytes is None


def test_without_a_model_it_is_said_what_is_missing() -> None:
    told = plan(configured(Story((), run="r"), model={}))
    assert told == PlanOfRun(run="r", why="model")


def test_the_plan_is_served_and_an_unknown_run_is_refused(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time(), run="a/b"))
        config = wire.Config(values=CONFIG, framework="verl", version="0.9.1", model={"name": "Qwen3-8B", **MODEL})
        agent.say(wire.Event(seq=1, at=time.time(), body=config))
        until("the plan to be known", lambda: server.get("/api/v1/runs/a/b/plan").json().get("phases"))
        told = server.get("/api/v1/runs/a/b/plan").json()
        assert (told["run"], told["model"], told["why"]) == ("a/b", "Qwen3-8B", None)
        assert {one["phase"] for one in told["phases"]} >= {"rollout", "update_actor"}
        refused = server.get("/api/v1/runs/other/plan")
        assert refused.status_code == 404
        assert refused.json()["error"] == 'there is no run "other"'
