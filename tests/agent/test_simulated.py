"""The simulation: a pure story in GPU samples, host memory and log lines, the same at every telling."""

from collections.abc import Iterator
from itertools import islice

import pytest

from oomwatch import wire
from oomwatch_agent.scenario import CARD_USABLE_GIB, DEMO, SCENARIOS, STORIES, Moment, moments
from oomwatch_agent.simulated import SimulatedSource
from oomwatch_agent.source import Found, Reading

GIB = 1024**3


class Clock:
    """Stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


def _play(scenario: str, seconds: int, *, gpus: int = 4, seed: int = 1, speed: float = 1.0) -> Iterator[Reading]:
    """The readings of an agent that reads once a second."""
    clock = Clock()
    source = SimulatedSource(scenario, gpus=gpus, seed=seed, speed=speed, clock=clock)
    source.open()
    for second in range(seconds):
        clock.now = 5000.0 + second
        yield source.read(slow=second % 10 == 0)
    source.close()


def _found(scenario: str, seconds: int, *, speed: float = 1.0) -> list[Found]:
    return [found for reading in _play(scenario, seconds, speed=speed) for found in reading.found]


def _bodies(scenario: str, seconds: int) -> list[wire.EventBody]:
    return [found.body for found in _found(scenario, seconds)]


def _steps(scenario: str, seconds: int) -> list[wire.Step]:
    return [body for body in _bodies(scenario, seconds) if isinstance(body, wire.Step)]


def _used(readings: Iterator[Reading], gpu: int) -> list[float]:
    return [(reading.gpus[gpu].used_bytes or 0) / GIB for reading in readings]


def _until_dead(scenario: str) -> list[Moment]:
    """The first life of a run."""
    life: list[Moment] = []
    for moment in islice(moments(STORIES[scenario], "1"), 2000):
        life.append(moment)
        if moment.ending is not None:
            return life
    pytest.fail(f"{scenario} does not end")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_seed_tells_the_same_story(scenario: str) -> None:
    assert list(_play(scenario, 200, speed=3.0)) == list(_play(scenario, 200, speed=3.0))


def test_another_seed_tells_another() -> None:
    assert list(_play("healthy", 60, seed=1)) != list(_play("healthy", 60, seed=2))


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("gpus", [1, 3, 8])
def test_every_gpu_is_read_every_time_and_within_its_card(scenario: str, gpus: int) -> None:
    labels = [str(gpu) for gpu in range(gpus)]
    for reading in _play(scenario, 120, gpus=gpus, speed=5.0):
        assert [sample.gpu for sample in reading.gpus] == labels
        for sample in reading.gpus:
            assert sample.used_bytes is not None
            assert 0 < sample.used_bytes < CARD_USABLE_GIB * GIB
            assert wire.decode_agent(wire.encode(wire.Sample(seq=1, at=1.0, gpus=(sample,)))) is not None


def test_the_facts_are_those_of_80_gb_cards_and_say_that_they_are_simulated() -> None:
    facts = SimulatedSource("healthy", gpus=2, seed=1).open()
    assert [gpu.total_bytes for gpu in facts.gpus] == [81559 * 1024**2] * 2
    assert all("Simulated" in gpu.name for gpu in facts.gpus)
    assert [source.detail for source in facts.sources] == ["simulation: healthy, seed 1, speed 1"]


def test_a_healthy_run_is_a_sawtooth_that_stays_where_it_is() -> None:
    used = _used(_play("healthy", 600), 0)
    early, late = used[60:300], used[300:]
    assert min(early) < 12
    assert 55 < max(early) < 0.85 * CARD_USABLE_GIB
    assert max(late) == pytest.approx(max(early), abs=1.0)
    assert min(late) == pytest.approx(min(early), abs=1.0)


def test_a_healthy_run_never_ends() -> None:
    assert all(moment.ending is None for moment in islice(moments(STORIES["healthy"], "1"), 5000))


def test_steps_are_told_in_order_with_timings_that_match_the_clock() -> None:
    steps = _steps("healthy", 300)
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) == 11
    for step in steps:
        assert step.step_seconds == pytest.approx(24.0, rel=0.1)
        assert step.rollout_seconds == pytest.approx(10.0, rel=0.1)
        assert sum(step.phase_seconds.values()) == pytest.approx(step.step_seconds or 0, rel=0.01)


def test_a_faster_run_tells_its_faster_timings() -> None:
    steps = [found.body for found in _found("healthy", 60, speed=10.0) if isinstance(found.body, wire.Step)]
    assert len(steps) > 20
    assert all(step.step_seconds == pytest.approx(2.4, rel=0.1) for step in steps)


def test_lines_name_processes_that_the_gpus_show() -> None:
    pids: set[int] = set()
    named: set[int | None] = set()
    for reading in _play("leak", 60):
        pids |= {process.pid for gpu in reading.gpus for process in gpu.processes or ()}
        named |= {found.origin.pid for found in reading.found if isinstance(found.body, wire.TorchMemory)}
    assert named
    assert named <= pids


def test_processes_are_read_on_slow_reads_only_and_add_up_to_less_than_the_gpu_has() -> None:
    for second, reading in enumerate(_play("healthy", 60)):
        for gpu in reading.gpus:
            assert (gpu.processes is not None) == (second % 10 == 0)
            total = sum(process.used_bytes or 0 for process in gpu.processes or ())
            assert total <= (gpu.used_bytes or 0)


def test_a_leak_raises_every_peak_until_the_device_is_full_and_the_run_starts_again() -> None:
    life = _until_dead("leak")
    peaks = [moment.gib for moment in life if moment.phase == "gen"]
    assert peaks == sorted(peaks)
    assert len(peaks) >= 10
    assert life[-1].ending == "device_oom"
    found = _found("leak", 420)
    ends = [index for index, event in enumerate(found) if isinstance(event.body, wire.DeviceOom)]
    assert len(ends) == 1
    later = [event for event in found[ends[0] + 1 :] if isinstance(event.body, wire.Step)]
    assert isinstance(later[0].body, wire.Step)
    assert later[0].body.step == 1
    assert {event.origin.pid for event in later} & {event.origin.pid for event in found[: ends[0]]} == set()


def test_after_the_end_the_cards_are_empty_for_a_while() -> None:
    used = _used(_play("oom", 200), 0)
    assert min(used[60:]) < 1.0


def test_residue_grows_after_each_sleep_until_the_engine_cannot_wake() -> None:
    sleeps = [found for found in _found("sleep-residue", 150) if isinstance(found.body, wire.EngineSleep)]
    engines = dict.fromkeys(found.origin.pid for found in sleeps)
    one = [found.body for found in sleeps if found.origin.pid == next(iter(engines))]
    told = [body.still_used_bytes for body in one if isinstance(body, wire.EngineSleep)]
    residues = [still_used / GIB for still_used in told if still_used is not None]
    assert len(engines) >= 2
    assert residues[:5] == pytest.approx([4.1, 4.1, 4.1, 11.6, 19.1], abs=0.01)
    assert _until_dead("sleep-residue")[-1].ending == "wake_oom"
    assert any(isinstance(body, wire.DeviceOom) for body in _bodies("sleep-residue", 150))


def test_slow_rollouts_take_more_than_three_times_as_long() -> None:
    rollouts = [step.rollout_seconds or 0.0 for step in _steps("slow-rollout", 400)]
    usual = rollouts[:5]
    assert all(slow > 3 * max(usual) for slow in rollouts[5:8])
    assert all(after < 1.2 * max(usual) for after in rollouts[8:10])


def test_growing_responses_slow_the_rollout_but_not_its_tokens() -> None:
    steps = _steps("length-growth", 900)
    lengths = [step.response_length_mean_tokens or 0.0 for step in steps]
    speeds = [step.rollout_ms_per_token or 0.0 for step in steps]
    assert lengths[-1] > 3 * lengths[0]
    assert max(speeds) == pytest.approx(speeds[0], rel=0.05)
    assert all(moment.ending is None for moment in islice(moments(STORIES["length-growth"], "1"), 2000))


def test_a_sudden_end_has_no_sign_before_it() -> None:
    life = _until_dead("oom")
    assert life[-1].step == 4
    assert max(moment.gib for moment in life[:-1]) < 0.85 * CARD_USABLE_GIB


def test_a_host_leak_ends_when_ray_kills_at_95_percent_of_the_host() -> None:
    readings = list(_play("host-leak", 500))
    used = [reading.host.memory_used_bytes for reading in readings if reading.host is not None]
    assert max(value for value in used if value is not None) > 0.95 * 1007 * GIB
    kills = [found.body for reading in readings for found in reading.found if isinstance(found.body, wire.HostOom)]
    assert len(kills) == 1
    assert max(_used(iter(readings), 0)) < 0.85 * CARD_USABLE_GIB


def test_a_storm_switches_a_dozen_times_a_step() -> None:
    markers: list[int] = []
    count = 0
    for body in _bodies("reshard-storm", 300):
        if isinstance(body, wire.Reshard):
            count += 1
        elif isinstance(body, wire.Step):
            markers.append(count)
            count = 0
    assert min(markers[4:8]) > 5 * max(markers[1:3])


def test_the_demo_runs_two_runs_side_by_side_on_half_of_the_gpus_each() -> None:
    runs: dict[str, set[str | None]] = {}
    for reading in _play("demo", 30, gpus=8):
        for gpu in reading.gpus:
            runs.setdefault(gpu.gpu, set()).update(process.run for process in gpu.processes or ())
    assert [runs[str(gpu)] for gpu in range(8)] == [{"demo-healthy"}] * 4 + [{"demo-leak"}] * 4


def test_within_90_seconds_the_demo_shows_a_healthy_run_and_one_that_climbs() -> None:
    readings = list(_play("demo", 90, gpus=2))
    first, last = readings[:30], readings[60:]
    healthy, climbing = (max(_used(iter(last), gpu)) - max(_used(iter(first), gpu)) for gpu in (0, 1))
    assert healthy < 1.0
    assert climbing > 4.0
    assert not any(isinstance(found.body, wire.DeviceOom) for reading in readings for found in reading.found)
    steps = [found.run for reading in readings for found in reading.found if isinstance(found.body, wire.Step)]
    assert min(steps.count(run) for run in DEMO) >= 6


def test_with_one_gpu_the_demo_shows_the_run_that_is_in_trouble() -> None:
    names = {found.run for reading in _play("demo", 30, gpus=1) for found in reading.found}
    assert names == {"demo-leak"}
