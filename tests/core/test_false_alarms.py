"""What cried wolf or stayed silent once, and must not again. Figures are shares of a card of 80 GiB."""

import random
from collections.abc import Callable

import pytest
from tests.core.story import GIB, Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.rule import RuleSet


def run_of(story: Story, peaks: list[float], step_seconds: int, tell: Callable[[Story, float], object]) -> Story:
    """A run whose steps have these peaks, between troughs of a half; told every tenth of a step."""
    for number, peak in enumerate(peaks, start=1):
        for tenth in range(10):
            share = peak if 3 <= tenth < 7 else 0.5
            story.wait(step_seconds / 10)
            tell(story, share)
        story.step(number, step_seconds * 0.4, step_seconds=float(step_seconds))
    return story


def by_probe(story: Story, share: float) -> None:
    used = int(share * 80 * GIB)
    reading = wire.TorchSample(pid=1, gpu="0", run="r", reserved_bytes=used)
    story.sample(wire.GpuSample(gpu="0", used_bytes=used), torch=(reading,))


def by_lines(story: Story, share: float) -> None:
    used = int(share * 80 * GIB)
    story.used(share * 80)
    story.event(wire.TorchMemory(reserved_bytes=used, device_used_bytes=used, device_total_bytes=80 * GIB, gpu="0"))


@pytest.mark.parametrize("tell", [by_probe, by_lines])
@pytest.mark.parametrize("spread", [0.005, 0.02])
def test_a_card_that_is_filled_well_and_steadily_raises_no_critical(
    tell: Callable[[Story, float], object], spread: float
) -> None:
    dice = random.Random(1)
    peaks = [min(0.985, dice.gauss(0.93, spread)) for _ in range(200)]
    assert run_of(Story(shipped("torch_reserved_high"), run="r"), peaks, 60, tell).heard == []


@pytest.mark.parametrize("tell", [by_probe, by_lines])
@pytest.mark.parametrize("step_seconds", [30, 300, 2700])
def test_a_slow_leak_is_seen_however_long_a_step_takes(
    tell: Callable[[Story, float], object], step_seconds: int
) -> None:
    peaks = [0.88 + 0.003 * number for number in range(40)]
    story = run_of(Story(shipped("torch_reserved_high"), run="r"), peaks, step_seconds, tell)
    assert story.states == ["firing"]
    assert story.heard[0].at < 22 * step_seconds


def test_a_program_that_loads_is_no_trend() -> None:
    story = Story(shipped("torch_reserved_high"), run="r")
    for second in range(1200):
        story.wait(1)
        by_probe(story, min(0.93, 0.1 + second / 60))
    assert story.heard == []


def test_after_an_out_of_memory_the_empty_card_ends_the_alert() -> None:
    story = Story(shipped("torch_reserved_high"), run="r")
    run_of(story, [0.80 + 0.02 * number for number in range(10)], 60, by_probe)
    assert story.states == ["firing"]
    story.wait(900, lambda s: s.used(0.5))
    assert story.states == ["firing", "resolved"]


def test_the_first_steps_are_not_held_against_a_bound() -> None:
    story = Story(shipped("reshard_storm"))
    for number in (1, 2, 3):
        story.wait(100).step(number, 30.0, step_seconds=100.0, reshard_seconds=40.0)
    assert story.wait(30).heard == []


def test_process_ids_repeat_between_nodes() -> None:
    story = Story(shipped("reshard_storm"))
    story.hello("m")
    for _ in range(12):
        for node in ("n", "m"):
            story.wait(7.5).event(wire.Reshard(marker="resume_kv_cache"), pid=7, node=node)
    assert story.heard == []


def test_a_marker_of_the_past_does_not_hide_the_one_of_today() -> None:
    story = Story(shipped("reshard_storm")).event(wire.Reshard(marker="resume_kv_cache"), pid=7).wait(3600)
    for _ in range(30):
        story.wait(3).event(wire.Reshard(marker="wake_up_weights"), pid=8)
    assert "firing" in story.states


def test_two_processes_that_print_step_lines_are_one_run_of_steps() -> None:
    story = Story(shipped("rollout_time_jump"))
    for number in range(1, 12):
        story.wait(60).event(wire.Step(step=number, rollout_seconds=30.0 if number < 10 else 300.0), pid=5)
        story.wait(1).event(wire.Step(step=number, step_seconds=60.0), pid=6)
    assert story.states == ["firing"]
    (run,) = story.engine.fleet.runs.values()
    assert [record.step.step_seconds for record in run.steps] == [60.0] * 11


def test_a_run_that_ended_ends_its_alerts_where_it_is_being_watched() -> None:
    story = Story(shipped("rollout_time_jump"))
    for number in range(1, 8):
        story.wait(60).step(number, 30.0 if number < 7 else 300.0)
    story.wait(2 * 3600)  # nobody is heard: nothing can be told
    assert story.states == ["firing"]
    story.wait(30, lambda s: s.used(1))
    assert story.heard[-1].reason == "run ended"


HIGH = rules_of("    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n")


def test_a_gpu_that_is_listed_no_more_ends_its_alert() -> None:
    story = Story(HIGH, gpus=2).used(75, gpu="1")
    story.hello("n", gpus=1)
    assert story.wait(2).heard[-1].reason == "no longer listed"


def test_a_lost_gpu_is_lost_though_it_is_listed_no_more() -> None:
    story = Story(shipped("gpu_lost"), gpus=2)
    story.used(1, gpu="1").sample(wire.GpuSample(gpu="1", status="lost"))
    story.hello("n", gpus=1)
    assert story.wait(600).states == ["firing"]


def test_an_agents_goodbye_ends_its_alerts_after_an_hour() -> None:
    story = Story(HIGH).used(75)
    story.engine.observe(wire.Bye(seq=99, at=story.now), "n", story.now)
    assert story.wait(1800).states == ["firing"]
    assert story.wait(1900).heard[-1].reason == "no longer watched"


def test_a_node_that_a_person_removes_takes_its_alerts_along() -> None:
    story = Story(HIGH).used(75)
    (ended,) = story.engine.retire("n", 5.0)
    assert ended.reason == "node removed"
    assert story.engine.fleet.nodes == {}


def test_a_rule_that_moves_to_other_subjects_ends_its_alerts() -> None:
    story = Story(HIGH).used(75)
    moved = rules_of("    when: {kind: threshold, metric: host_memory_ratio, above: 85%}\n")
    (ended,) = story.engine.replace_rules(moved, 5.0)
    assert ended.reason == "rule removed"


def test_the_time_that_the_server_stood_still_is_nobodys_silence() -> None:
    story = Story(shipped("agent_silent")).wait(10, lambda s: s.used(1))
    story.now += 40
    story.engine.excuse_silence(40)
    assert story.wait(25).heard == []
    assert story.wait(10).states == ["firing"]


@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_clock_that_is_set_changes_nothing_but_the_time(jump: float) -> None:
    story = Story(RuleSet(rules=(*HIGH.rules, *shipped("agent_silent").rules))).wait(10, lambda s: s.used(75))
    story.now += jump
    story.engine.clock_jumped(jump)
    story.wait(20, lambda s: s.used(75))
    assert story.states == ["firing"]
    story.wait(40)
    assert story.states == ["firing", "firing"]
    assert story.heard[-1].alert == "agent_silent"


@pytest.mark.parametrize("jump", [3600, -3600])
def test_readings_windows_and_phases_go_on_over_a_clock_that_is_set(jump: float) -> None:
    told = Story(shipped("torch_reserved_high"), run="r")
    for number, peak in enumerate([0.80 + 0.02 * step for step in range(9)], start=1):
        if number == 5:
            told.now += jump
            told.engine.clock_jumped(jump)
        told.wait(30, lambda s, peak=peak: by_probe(s, peak)).step(number, 10.0, step_seconds=30.0)  # type: ignore[misc]
    assert told.states == ["firing"]
    gpu = told.engine.fleet.nodes["n"].gpus["0"]
    assert gpu.used_bytes == int(0.96 * 80 * GIB)
    assert told.engine.fleet.runs["r"].steps.rhythm_seconds() == 30.0
    assert max(record.at for record in told.engine.fleet.runs["r"].steps) == told.now


def test_the_run_that_has_left_a_node_is_no_label_of_its_gpus() -> None:
    story = Story(HIGH).event(wire.TorchMemory(reserved_bytes=GIB, gpu="0"), run="old").wait(1900)
    story.event(wire.Step(step=1), run="new").used(75)
    assert story.heard[0].labels == {"node": "n", "gpu": "0", "run": "new"}
