"""What an agent saw between two samples counts where a limit is held against it, once, and nowhere else."""

import pytest
from tests.core.host_story import HostStory
from tests.core.step_story import PHASE_SECONDS, Told, gpu_of, tell
from tests.core.story import GIB, Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.signals import SIGNALS
from oomwatch.core.subject import Subject

AT_ONCE = "    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n"
HELD = AT_ONCE + "    for: 30s\n"


def _spiked(used_gib: float, peak_gib: float, seconds_ago: float = 0.4) -> wire.GpuSample:
    return wire.GpuSample(
        gpu="0",
        used_bytes=int(used_gib * GIB),
        used_peak_bytes=int(peak_gib * GIB),
        used_peak_seconds_ago=seconds_ago,
    )


def test_a_spike_between_two_samples_fires_a_rule_that_holds_for_no_time() -> None:
    story = Story(rules_of(AT_ONCE))
    story.wait(5, lambda one: one.used(40))
    story.sample(_spiked(40, 78))
    assert story.states == ["firing"]
    assert story.heard[0].value == pytest.approx(78 / 80)


def test_the_sentence_names_the_height_that_was_reached() -> None:
    story = Story(shipped("gpu_memory_high", "warning"))
    story.wait(40, lambda one: one.sample(_spiked(40, 78)))
    fired = next(one for one in story.heard if one.state == "firing")
    assert fired.facts["used_bytes"] == 78 * GIB


def test_one_spike_does_not_outlast_its_second() -> None:
    story = Story(rules_of(HELD))
    story.sample(_spiked(40, 78))
    story.wait(60, lambda one: one.used(40))
    assert "firing" not in story.states


def test_a_card_that_is_too_full_for_a_fifth_of_every_second_is_told_after_the_hold_time() -> None:
    story = Story(rules_of(HELD))
    story.wait(40, lambda one: one.sample(_spiked(40, 78)))
    assert story.said[-1][0] == pytest.approx(31, abs=2)
    assert story.states[-1] == "firing"


def test_a_spike_is_a_peak_of_the_phase_in_which_it_was_and_not_of_that_in_which_it_is_told() -> None:
    story = Story(())
    tell(story, 1, Told())
    for phase, seconds in PHASE_SECONDS.items():
        story.wait(seconds, lambda one: one.used(30))
        if phase == "rollout":  # told six seconds into the next phase, ten after it was seen
            story.sample(_spiked(30, 79, seconds_ago=10.0), at=story.now + 6)
    story.event(
        wire.Step(
            step=2,
            step_seconds=float(sum(PHASE_SECONDS.values())),
            phase_seconds={phase: float(seconds) for phase, seconds in PHASE_SECONDS.items()},
        )
    )
    step = gpu_of(story).steps[-1]
    assert step.peak_of("rollout") == pytest.approx(79 * GIB, rel=1e-6)
    assert {step.peak_of(phase) for phase in PHASE_SECONDS if phase != "rollout"} == {30.0 * GIB}


def test_a_spike_raises_the_peak_of_its_step_and_leaves_the_floor() -> None:
    spiked, plain = Story(()), Story(())
    for one in (spiked, plain):
        tell(one, 1, Told())
    spiked.sample(_spiked(30, 79, seconds_ago=0.1), at=spiked.now + 0.6)
    plain.sample(wire.GpuSample(gpu="0", used_bytes=30 * GIB), at=plain.now + 0.6)
    for one in (spiked, plain):
        tell(one, 2, Told())
    with_spike, without = gpu_of(spiked).steps[-1], gpu_of(plain).steps[-1]
    assert with_spike.peak_bytes == pytest.approx(79 * GIB, rel=1e-6)
    assert without.peak_bytes is not None
    assert without.peak_bytes < 79 * GIB
    assert with_spike.floor_bytes == without.floor_bytes


def test_a_spike_is_the_peak_of_its_block_where_no_steps_are_told() -> None:
    story = Story(())
    story.wait(290, lambda one: one.used(30))
    story.sample(_spiked(30, 79))
    story.wait(30, lambda one: one.used(30))
    (block,) = gpu_of(story).blocks.closed()
    assert (block.peak_bytes, block.floor_bytes) == (79 * GIB, 30 * GIB)
    assert gpu_of(story).used_peaks.peak(0.0, story.now) == 79 * GIB


def test_what_is_compared_with_another_figure_of_the_moment_is_the_moment() -> None:
    story = Story(())
    story.sample(_spiked(30, 79))
    assert (gpu_of(story).used_bytes, gpu_of(story).highest_bytes) == (30 * GIB, 79 * GIB)


def test_a_spike_of_the_host_counts_towards_its_limit_and_its_peaks() -> None:
    story = HostStory(
        rules_of("    when: {kind: threshold, metric: host_memory_ratio, above: 90%}\n"), container_gib=100
    )
    story.read(400, container=50)
    host = wire.HostSample(
        memory_used_bytes=400 * GIB,
        cgroup_used_bytes=50 * GIB,
        cgroup_used_peak_bytes=99 * GIB,
        cgroup_used_peak_seconds_ago=0.3,
    )
    story.sample(host=host, at=story.now + 1)
    assert SIGNALS["host_memory_ratio"].read(story.engine.fleet, Subject("node", "n"), story.now + 1) == 0.99
    assert story.states == ["firing"]
    container = story.engine.fleet.nodes["n"].history.of("container")
    assert container is not None
    span = (story.now - 300.0, story.now + 300.0)
    assert container.each([span], {})[span] == pytest.approx(99 * GIB, rel=1e-6)
