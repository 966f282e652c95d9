"""What the simulation says from within its processes fits what its cards and its log say: probes, engines, settings."""

from collections.abc import Iterator

import pytest

from oomwatch import wire
from oomwatch_agent.logs.config_keys import ALLOWED
from oomwatch_agent.sampler import Collected, Sampler
from oomwatch_agent.scenario import CARD_USABLE_GIB, SCENARIOS, STORIES, moments
from oomwatch_agent.simulated import SimulatedSource
from oomwatch_agent.simulated_config import configured
from oomwatch_agent.simulated_probe import Allocator

GIB = 1024**3
NOW = 1_790_000_000.0


def _play(scenario: str, seconds: int, *, gpus: int = 2) -> Iterator[Collected]:
    """What an agent of a simulated node would send, read once a second."""
    clock = [0.0]
    source = SimulatedSource(scenario, gpus=gpus, seed=1, clock=lambda: clock[0])
    sampler = Sampler([source], clock=lambda: clock[0], answer_within_seconds=5.0)
    try:
        for second in range(seconds):
            clock[0] = float(second)
            yield sampler.collect(NOW + second, slow=second % 10 == 0)
    finally:
        sampler.close()


def _torch(scenario: str, seconds: int, *, rank: int = 0) -> list[wire.TorchSample]:
    played = _play(scenario, seconds)
    return [reading for one in played for reading in one.sample.torch if reading.rank == rank]


def _engines(scenario: str, seconds: int) -> list[wire.EngineSample]:
    return [engine for one in _play(scenario, seconds) for engine in one.sample.engines]


def _events(scenario: str, seconds: int, kind: type[wire.EventBody]) -> list[wire.Event]:
    return [event for one in _play(scenario, seconds) for event in one.events if isinstance(event.body, kind)]


def _gib(count: int | None) -> float:
    assert count is not None
    return count / GIB


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_rank_has_a_reading_that_fits_its_card(scenario: str) -> None:
    for one in _play(scenario, 200, gpus=3):
        used = {gpu.gpu: _gib(gpu.used_bytes) for gpu in one.sample.gpus}
        for reading in one.sample.torch:
            assert reading.gpu in used
            assert 0 <= _gib(reading.allocated_bytes) <= _gib(reading.reserved_bytes) <= used[reading.gpu]
            assert _gib(reading.reserved_bytes) <= _gib(reading.reserved_peak_bytes) <= CARD_USABLE_GIB
            assert _gib(reading.inactive_split_bytes) <= _gib(reading.reserved_bytes) - _gib(reading.allocated_bytes)


def test_every_gpu_has_a_trainer_that_the_probe_and_the_driver_know_alike() -> None:
    first = next(_play("healthy", 1, gpus=4))
    trainers = [process for gpu in first.sample.gpus for process in gpu.processes or () if process.role == "actor"]
    probed = [(reading.pid, reading.rank, reading.role, reading.run) for reading in first.sample.torch]
    assert [(one.pid, one.rank, one.role, one.run) for one in trainers] == probed
    assert [reading.gpu for reading in first.sample.torch] == ["0", "1", "2", "3"]
    others = [process for gpu in first.sample.gpus for process in gpu.processes or () if process not in trainers]
    assert [(one.role, one.rank) for one in others] == [("rollout", None)] * 4


def test_torch_gives_memory_back_for_each_rollout_and_takes_it_again() -> None:
    reserved = [_gib(reading.reserved_bytes) for reading in _torch("healthy", 120)]
    assert min(reserved[30:]) < 6
    assert 40 < max(reserved) < 52


def test_what_the_log_says_of_torch_in_a_rollout_is_what_the_probe_reads() -> None:
    said: wire.TorchMemory | None = None
    compared = 0
    for one in _play("leak", 200):
        for event in one.events:
            if isinstance(event.body, wire.TorchMemory | wire.EngineSleep):
                said = event.body if isinstance(event.body, wire.TorchMemory) else None
        rank_0 = next((reading for reading in one.sample.torch if reading.rank == 0), None)
        if said is not None and said.at_point == "After resume kv_cache" and rank_0 is not None:
            assert _gib(rank_0.reserved_bytes) == pytest.approx(_gib(said.reserved_bytes), abs=0.01)
            assert _gib(rank_0.allocated_bytes) == pytest.approx(_gib(said.allocated_bytes), abs=0.01)
            compared += 1
    assert compared > 30


def test_a_leak_is_in_the_trainer_and_in_use() -> None:
    allocated = [_gib(reading.allocated_bytes) for reading in _torch("leak", 290)]
    assert min(allocated[260:]) > min(allocated[30:60]) + 15


def test_a_healthy_run_never_has_to_give_its_cache_back_and_one_with_ever_longer_responses_has_to() -> None:
    assert {(one.alloc_retries_total, one.ooms_total) for one in _torch("healthy", 400)} == {(0, 0)}
    retries = [one.alloc_retries_total or 0 for one in _torch("length-growth", 1100)]
    assert retries == sorted(retries)
    assert retries[0] == 0 < retries[-1]


def test_a_sudden_end_is_the_first_retry_and_the_first_failure() -> None:
    allocator = Allocator(0, 100, "GPU-0", "r")
    counts: list[tuple[int | None, int | None]] = []
    for moment in moments(STORIES["oom"], "1"):
        reading = allocator.see(moment, moment.gib_at(moment.end - 0.01, 0))
        counts.append((reading.alloc_retries_total, reading.ooms_total))
        if moment.ending is not None:
            break
    assert set(counts[:-1]) == {(0, 0)}
    assert counts[-1] == (1, 1)


def test_a_run_that_starts_again_has_new_processes_whose_counters_begin_again() -> None:
    readings = _torch("oom", 160)
    pids = list(dict.fromkeys(reading.pid for reading in readings))
    first_of_second = next(reading for reading in readings if reading.pid == pids[1])
    assert len(pids) == 2
    assert _gib(first_of_second.reserved_peak_bytes) < 30


def test_every_probe_introduces_itself_at_each_start_of_the_run() -> None:
    told = _events("oom", 160, wire.Probe)
    ranks = [event.body.rank for event in told if isinstance(event.body, wire.Probe)]
    gpus = [event.body.gpus for event in told if isinstance(event.body, wire.Probe)]
    assert ranks == [0, 1, 0, 1]
    assert gpus == [("0",), ("1",), ("0",), ("1",)]
    assert {event.run for event in told} == {"simulated-oom"}


def test_engines_have_a_cache_in_rollouts_only() -> None:
    by_running: dict[bool, set[float]] = {True: set(), False: set()}
    for engine in _engines("healthy", 120):
        by_running[bool(engine.requests_running)].add(engine.kv_used_ratio or 0.0)
    assert by_running[False] == {0.0}
    assert 0.2 < max(by_running[True]) < 0.5


def test_engines_preempt_only_once_responses_fill_their_cache() -> None:
    assert {engine.preemptions_total for engine in _engines("healthy", 200)} == {0}
    grown = [engine for engine in _engines("length-growth", 1100) if engine.address.endswith(":8100")]
    counts = [engine.preemptions_total or 0 for engine in grown]
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert max(engine.kv_used_ratio or 0.0 for engine in grown) <= 1


def test_before_the_engines_are_up_and_after_the_end_nothing_tells_of_them() -> None:
    played = list(_play("oom", 112))
    assert [len(one.sample.engines) for one in (played[0], played[60], played[-1])] == [0, 2, 0]
    assert [len(one.sample.torch) for one in (played[0], played[60], played[-1])] == [2, 2, 0]


@pytest.mark.parametrize("scenario", STORIES)
def test_the_configuration_has_verls_keys_that_may_leave_a_node(scenario: str) -> None:
    config = configured(STORIES[scenario], 4)
    assert set(config.values) <= set(ALLOWED)
    assert config.values["trainer.n_gpus_per_node"] == 4
    assert config.values["actor_rollout_ref.rollout.gpu_memory_utilization"] == 0.67


def test_the_demos_crowded_run_gives_its_engine_more_of_the_card() -> None:
    shares = {
        event.run: event.body.values["actor_rollout_ref.rollout.gpu_memory_utilization"]
        for event in _events("demo", 5, wire.Config)
        if isinstance(event.body, wire.Config)
    }
    assert shares == {"demo-healthy": 0.67, "demo-leak": 0.73}
