"""What becomes of warnings: each is judged by what happened afterwards, once, and the same after a restart."""

import pytest
from tests.core.story import Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.rule import RuleSet

FULL = rules_of(
    "    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n    for: 10s\n    keep_firing_for: 20s\n"
)
HOST = rules_of("    when: {kind: threshold, metric: host_memory_ratio, above: 85%}\n    keep_firing_for: 20s\n")
INFO = rules_of("    severity: info\n    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n")
STEP_SECONDS = 60
OOM = wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0")
MINE = wire.GpuProcess(pid=1, used_bytes=1, run="r")
THEIRS = wire.GpuProcess(pid=2, used_bytes=1)


class Training(Story):
    """A run of steps of a minute each, at one level of memory."""

    def __init__(self, rules: RuleSet = FULL, *, gpus: int = 1, pid: int = 1) -> None:
        super().__init__(rules, gpus=gpus, run="r")
        self.number = 0
        self.pid = pid

    def train(self, steps: int, gib: float) -> "Training":
        for _ in range(steps):
            self.wait(STEP_SECONDS, lambda story: story.used(gib))
            self.number += 1
            self.event(wire.Step(step=self.number, step_seconds=STEP_SECONDS), pid=self.pid)
        return self

    @property
    def outcomes(self) -> list[wire.Outcome]:
        return [one.outcome for one in self.heard if one.outcome is not None]

    @property
    def verdicts(self) -> list[str]:
        return [one.verdict for one in self.outcomes]


def warned() -> Training:
    """Six steps at ease, and two with a card that is nearly full."""
    story = Training().train(6, 40).train(2, 75)
    assert story.states == ["firing"]
    return story


# ---------------------------------------------------------------- it happened


def test_an_oom_while_the_alert_is_open_has_happened_with_its_lead() -> None:
    story = warned()
    fired_at = story.heard[0].at
    story.train(3, 75).event(OOM)
    (outcome,) = story.outcomes
    assert outcome == wire.Outcome(verdict="happened", at=story.now, lead_seconds=story.now - fired_at, lead_steps=5)


def test_an_outcome_changes_nothing_of_its_alert() -> None:
    story = warned()
    story.event(OOM)
    firing, said = story.heard
    assert (said.change, said.state, said.id, said.severity) == ("outcome", "firing", firing.id, firing.severity)
    story.wait(120, lambda one: one.used(1))
    assert story.heard[-1].state == "resolved"


def test_an_oom_of_another_rank_of_the_run_has_happened_too() -> None:
    story = warned()
    story.hello("m")
    story.event(wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0"), node="m")
    assert story.verdicts == ["happened"]


def test_an_oom_of_another_run_says_nothing() -> None:
    story = warned()
    story.hello("m")
    story.event(OOM, node="m", run="other")
    assert story.verdicts == []


def test_an_oom_soon_after_the_alert_was_over_has_happened() -> None:
    story = warned().train(2, 40)
    assert story.states == ["firing", "resolved"]
    story.train(15, 40).event(OOM)
    assert story.verdicts == ["happened"]
    assert (story.heard[-1].change, story.heard[-1].state) == ("outcome", "resolved")


def test_sixty_four_messages_of_one_failure_make_one_outcome() -> None:
    story = warned()
    for _ in range(64):
        story.event(OOM)
    assert story.verdicts == ["happened"]


def test_a_warning_that_follows_an_oom_is_its_echo_and_gets_no_verdict() -> None:
    story = Training().train(6, 40).event(OOM)
    assert isinstance(story, Training)
    story.train(1, 75).train(60, 40)
    assert story.states == ["firing", "resolved"]
    assert story.verdicts == []


def test_what_was_said_before_we_looked_has_not_happened_now() -> None:
    story = warned()
    story.event(OOM, backlog=True)
    assert story.verdicts == []


def test_a_host_oom_is_held_against_warnings_of_that_host_alone() -> None:
    story = Training(HOST)
    story.hello("m")
    for node in ("n", "m"):
        story.sample(host=wire.HostSample(memory_used_bytes=900 * 2**30), node=node)
    assert story.states == ["firing", "firing"]
    story.event(OOM)
    story.event(wire.HostOom(reporter="kernel"), node="m")
    assert [one.labels["node"] for one in story.heard if one.outcome] == ["m"]


# ---------------------------------------------------------------- it was avoided


def test_a_restart_with_less_memory_has_avoided_it() -> None:
    story = warned()
    story.number, story.pid = 6, 2
    story.train(35, 40)
    assert story.verdicts == ["avoided"]


def test_a_change_of_the_configuration_has_avoided_it() -> None:
    story = Training().event(wire.Config(values={"micro_batch": 8}))
    assert isinstance(story, Training)
    story.train(6, 40).train(2, 75)
    story.event(wire.Config(values={"micro_batch": 4}))
    story.train(35, 40)
    assert story.verdicts == ["avoided"]


def test_the_same_configuration_printed_again_is_no_change() -> None:
    story = Training().event(wire.Config(values={"micro_batch": 8}))
    assert isinstance(story, Training)
    story.train(6, 40).train(2, 75)
    story.event(wire.Config(values={"micro_batch": 8}))
    story.train(35, 40)
    assert story.verdicts == ["false"]


def test_another_tenant_of_the_card_that_leaves_has_avoided_it() -> None:
    story = warned()
    story.sample(wire.GpuSample(gpu="0", used_bytes=75 * 2**30, processes=(MINE, THEIRS)))
    story.train(1, 75)
    story.sample(wire.GpuSample(gpu="0", used_bytes=40 * 2**30, processes=(MINE,)))
    story.train(35, 40)
    assert story.verdicts == ["avoided"]


def test_a_change_that_did_not_help_has_not_avoided_it() -> None:
    story = warned()
    story.number, story.pid = 6, 2
    story.train(10, 75).event(OOM)
    assert story.verdicts == ["happened"]


# ---------------------------------------------------------------- it was false


def test_what_calms_down_by_itself_and_stays_calm_was_false() -> None:
    story = warned().train(30, 40)
    assert story.verdicts == []  # an OOM now would still be the one that was warned of
    story.train(5, 40)
    assert story.verdicts == ["false"]
    resolved = next(one for one in story.heard if one.state == "resolved")
    assert story.outcomes[0].at - resolved.at == pytest.approx(1800, abs=15)


def test_a_forecast_that_is_still_up_when_twice_its_time_has_passed_was_false() -> None:
    story = warned()
    said = story.heard[0]
    forecast = wire.Transition(
        id=said.id, alert=said.alert, severity=said.severity, state="firing", at=story.now, started_at=said.started_at,
        labels=said.labels, facts={"eta_seconds": 300.0, "eta_high_seconds": 600.0},
    )  # fmt: skip
    again = restarted(story, [forecast])
    again.train(19, 75)
    assert again.verdicts == []
    again.train(2, 75)
    assert again.verdicts == ["false"]


def test_a_run_that_ends_before_the_forecast_time_leaves_it_open() -> None:
    story = warned()
    said = story.heard[0]
    forecast = wire.Transition(
        id=said.id, alert=said.alert, severity=said.severity, state="firing", at=story.now, started_at=said.started_at,
        labels=said.labels, facts={"eta_seconds": 36000.0},
    )  # fmt: skip
    again = restarted(story, [forecast])
    again.wait(6000, lambda one: one.used(1))
    assert again.states == ["resolved"]


def test_while_nothing_is_seen_of_the_node_nothing_is_judged() -> None:
    story = warned().train(1, 40)
    story.wait(4000)
    assert story.verdicts == []
    story.train(1, 40)
    assert len(story.verdicts) == 1


# ---------------------------------------------------------------- which warnings, and after a restart


def restarted(story: Training, told: list[wire.Transition]) -> Training:
    """Another engine that is told what the first one had said; the run goes on."""
    again = Training()
    again.now, again.number = story.now, story.number
    again.engine.fleet.nodes["n"].heard_at = story.now
    again.heard += again.engine.restore(told, again.now)
    return again


def test_information_and_what_predicts_nothing_get_no_verdict() -> None:
    nothing = rules_of(
        "    predicts: nothing\n    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n    for: 10s\n"
    )
    for rules in (INFO, nothing):
        story = Training(rules).train(6, 75).event(OOM)
        assert isinstance(story, Training)
        story.train(40, 40)
        assert story.verdicts == [], rules


def test_an_open_warning_is_judged_after_a_restart_of_the_server() -> None:
    story = warned()
    again = restarted(story, story.heard)
    again.train(3, 75).event(OOM)
    assert again.verdicts == ["happened"]
    assert again.outcomes[0].lead_seconds == again.now - story.heard[0].at


def test_a_warning_that_was_over_is_judged_after_a_restart_of_the_server() -> None:
    story = warned().train(2, 40)
    assert story.states == ["firing", "resolved"]
    again = restarted(story, story.heard)
    assert again.engine.episodes() == []
    again.train(35, 40)
    assert again.verdicts == ["false"]


def test_what_has_its_verdict_gets_none_after_a_restart() -> None:
    story = warned()
    story.event(OOM)
    again = restarted(story, story.heard)
    again.event(OOM)
    again.train(40, 40)
    assert again.verdicts == []
    assert again.states == ["resolved"]


def test_a_lowered_warning_that_is_raised_again_is_a_new_one() -> None:
    story = Training(shipped("gpu_memory_high")).train(50, 72)
    assert [one.change for one in story.heard] == ["state", "severity"]
    assert story.verdicts == []  # it told a level, and that was no mistake
    story.used(76)
    raised_at = story.now
    story.train(2, 76).event(OOM)
    assert story.verdicts == ["happened"]
    assert (story.outcomes[-1].lead_seconds, story.outcomes[-1].lead_steps) == (story.now - raised_at, 2)


def test_an_oom_soon_after_a_warning_was_lowered_has_happened() -> None:
    story = Training(shipped("gpu_memory_high")).train(15, 72)
    assert [one.change for one in story.heard] == ["state", "severity"]
    story.train(5, 72).event(OOM)
    assert story.outcomes[-1].lead_seconds == story.now - story.heard[0].at


def test_a_clock_that_is_set_moves_the_time_that_is_waited() -> None:
    story = warned().train(1, 40)
    story.engine.clock_jumped(7200.0)
    story.now += 7200
    story.train(20, 40)
    assert story.verdicts == []
    story.train(15, 40)
    assert story.verdicts == ["false"]
