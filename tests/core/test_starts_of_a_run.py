"""A run that starts again begins a new story: what was foretold of the start before is over, and so is its failure."""

from typing import ClassVar

from tests.core.step_story import Told, configure, tell, tell_all
from tests.core.story import GIB, Story, shipped

from oomwatch import wire
from oomwatch.core.asking import ask, stands
from oomwatch.core.conditions.threshold import Threshold
from oomwatch.core.engine import Engine
from oomwatch.core.lives import RunNews
from oomwatch.core.rule import RuleSet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import UNKNOWN
from oomwatch.units import Quantity

LEAK = RuleSet(rules=(*shipped("memory_forecast").rules, *shipped("out_of_memory").rules))
DEATH = 8  # the last step that is told before it
OOM = wire.DeviceOom(gpu="0", error="CUDA out of memory")


class OfAStart(Threshold, frozen=True, kw_only=True, tag="of_a_start"):
    """One that may stand, and is over with its run's start."""

    over_when_run: ClassVar[RunNews | None] = "starts"


def _leak(number: int) -> Told:
    return Told(rollout=40.0 + 5.0 * (number - 1))


def _until_it_dies(story: Story) -> Story:
    configure(story, a=1)
    return tell_all(story, DEATH, _leak).used(79.9).event(OOM, pid=1)


def _told(story: Story, alert: str) -> list[tuple[str, str, str | None]]:
    return [(one.id, one.state, one.reason) for one in story.heard if one.alert == alert and one.change == "state"]


def _open(story: Story) -> list[str]:
    return [episode.rule.alert for episode in story.engine.episodes() if episode.fired_at is not None]


def test_what_was_foretold_ends_when_the_program_has_left_its_card_after_running_out_of_memory() -> None:
    story = _until_it_dies(Story(LEAK))
    assert "memory_forecast" in _open(story)
    story.wait(2, lambda one: one.used(1.0))
    assert _open(story) == ["out_of_memory"]
    assert _told(story, "memory_forecast")[-1][1:] == ("resolved", "run ended")


def test_it_has_happened_by_then() -> None:
    story = _until_it_dies(Story(LEAK)).wait(2, lambda one: one.used(1.0))
    outcomes = [one.outcome.verdict for one in story.heard if one.outcome is not None]
    assert outcomes
    assert set(outcomes) == {"happened"}


def test_what_was_foretold_ends_at_the_configuration_of_the_next_start_where_the_card_was_not_read_empty() -> None:
    story = _until_it_dies(Story(LEAK)).wait(20, lambda one: one.used(70.0))
    assert "memory_forecast" in _open(story)
    configure(story, a=1)
    assert _told(story, "memory_forecast")[-1][1:] == ("resolved", "run restarted")
    told = len(story.heard)
    story.wait(60, lambda one: one.used(70.0))
    assert [one.alert for one in story.heard[told:] if one.state == "firing"] == []


def test_without_a_failure_and_a_configuration_it_ends_at_the_first_step_of_the_next_start() -> None:
    story = tell_all(Story(LEAK), DEATH, _leak).wait(60, lambda one: one.used(10.0))
    assert "memory_forecast" in _open(story)
    tell(story, 1, _leak(1))
    assert _told(story, "memory_forecast")[-1][1:] == ("resolved", "run restarted")


def test_a_configuration_without_a_failure_is_told_again_and_ends_nothing() -> None:
    story = configure(tell_all(Story(LEAK), DEATH, _leak), a=1)
    configure(story.wait(1), a=2)
    assert "memory_forecast" in _open(story)


def test_a_forecast_of_the_next_start_is_another_alert() -> None:
    story = _until_it_dies(Story(LEAK)).wait(30, lambda one: one.used(1.0))
    tell_all(configure(story, a=1), DEATH, _leak)
    warned = dict.fromkeys(key for key, state, _ in _told(story, "memory_forecast") if state == "firing")
    severities = len(shipped("memory_forecast").rules)
    assert len(warned) == 2 * severities


def test_a_failure_is_over_when_the_run_has_finished_a_step_of_its_next_start() -> None:
    story = configure(_until_it_dies(Story(LEAK)).wait(30, lambda one: one.used(1.0)), a=1)
    assert _open(story) == ["out_of_memory"]
    tell(story, 1, _leak(1))
    assert _told(story, "out_of_memory")[-1][1:] == ("resolved", "run restarted")
    assert _open(story) == []


def test_the_next_failure_is_another_alert_with_its_own_process() -> None:
    story = configure(_until_it_dies(Story(LEAK)).wait(30, lambda one: one.used(1.0)), a=1)
    tell(story, 1, _leak(1)).event(OOM, pid=2)
    fired = [one for one in story.heard if one.alert == "out_of_memory" and one.state == "firing"]
    assert [(one.facts["pid"], one.value) for one in fired] == [(1, 1.0), (2, 1.0)]
    assert fired[0].id != fired[1].id


def test_one_failure_told_by_several_processes_is_one_alert() -> None:
    story = _until_it_dies(Story(LEAK))
    story.wait(5).event(OOM, pid=2).wait(5).event(OOM, pid=3)
    assert [state for _, state, _ in _told(story, "out_of_memory")] == ["firing"]


def test_a_last_step_that_is_told_after_the_failure_is_of_the_same_start() -> None:
    story = _until_it_dies(Story(LEAK))
    tell(story, DEATH + 1, _leak(DEATH))
    assert "out_of_memory" in _open(story)
    configure(story, a=1)
    assert _told(story, "memory_forecast")[-1][1:] == ("resolved", "run restarted")


def test_a_run_that_dies_before_each_first_step_has_one_alert() -> None:
    story = _until_it_dies(Story(LEAK))
    for pid in range(2, 30):
        configure(story.wait(30, lambda one: one.used(1.0)), a=1).event(OOM, pid=pid)
    assert [state for _, state, _ in _told(story, "out_of_memory")] == ["firing"]


def test_one_that_was_configured_anew_and_dies_again_has_another() -> None:
    story = configure(_until_it_dies(Story(LEAK)).wait(30, lambda one: one.used(1.0)), a=2)
    assert _told(story, "out_of_memory")[-1][1:] == ("resolved", "run restarted")
    story.event(OOM, pid=2)
    assert [state for _, state, _ in _told(story, "out_of_memory")] == ["firing", "resolved", "firing"]


def test_a_run_that_resumes_at_the_next_step_is_known_to_have_started_again() -> None:
    story = configure(_until_it_dies(Story(LEAK)).wait(30, lambda one: one.used(1.0)), a=1)
    tell(story, DEATH + 1, _leak(1))
    assert story.engine.fleet.runs["r"].steps.restarts == 1
    assert _open(story) == []


def test_a_host_that_fills_up_is_judged_anew_when_its_run_starts_again() -> None:
    def grown(story: Story, gib: float) -> None:
        story.sample(host=wire.HostSample(memory_used_bytes=int(gib * GIB)))

    def tell_host(story: Story, count: int) -> Story:
        for number in range(1, count + 1):
            story.wait(60, lambda one, number=number: grown(one, 300 + 15 * number))  # type: ignore[misc]
            story.step(number)
        return story

    story = tell_host(Story(shipped("host_memory_forecast")), 35)
    assert "host_memory_forecast" in _open(story)
    story.wait(60, lambda one: grown(one, 300)).step(1)
    assert _told(story, "host_memory_forecast")[-1][1:] == ("resolved", "run restarted")
    tell_host(story, 3)
    assert _open(story) == []


def test_an_alert_goes_on_after_a_restart_of_the_server_unless_its_run_has_started_again_meanwhile() -> None:
    story = _until_it_dies(Story(LEAK))
    at = story.now
    messages: list[wire.AgentMessage] = [
        wire.Event(seq=1, at=at - 10, run="r", body=wire.Step(step=DEATH)),
        wire.Event(seq=2, at=at, run="r", body=OOM),
    ]
    again = wire.Event(seq=3, at=at + 60, run="r", body=wire.Step(step=1))
    assert _continued(story, messages) == []
    assert _continued(story, [*messages, again]) == ["run restarted"] * len(_open(story))


def _continued(story: Story, messages: list[wire.AgentMessage]) -> list[str | None]:
    """Why alerts end in a server that starts with these messages."""
    engine, hello = Engine(LEAK), story.engine.fleet.nodes["n"].hello
    for message in (hello, *messages):
        engine.recall(message, "n", story.now)
    told = [one for one in story.heard if one.id in {episode.id for episode in story.engine.episodes()}]
    return [one.reason for one in engine.restore(told, story.now + 61) if one.state == "resolved"]


def test_what_is_unknown_between_two_starts_does_not_stand_there_either() -> None:
    story = tell_all(configure(Story(LEAK), a=1), 1, _leak)
    of_a_start, fleet = OfAStart(metric="gpu_used_ratio", above=Quantity(0.9)), story.engine.fleet
    card = Subject("gpu", "n", "0")
    assert stands(of_a_start, fleet, card, story.now)
    story.event(OOM, pid=1).wait(2, lambda one: one.used(1.0))
    assert ask(of_a_start, fleet, card, story.now) == UNKNOWN
    assert not stands(of_a_start, fleet, card, story.now)
