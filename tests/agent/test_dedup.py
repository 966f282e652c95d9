"""One record that reaches the agent by two ways is one event."""

from pathlib import Path

from oomwatch import wire
from oomwatch_agent.dedup import WINDOW_SECONDS, Deduplicator
from oomwatch_agent.logsource import LogSource
from oomwatch_agent.ray_session import RaySource
from oomwatch_agent.source import Found, Source

LEAK = Path(__file__).resolve().parents[1] / "fixtures" / "verl-0.9.1-leak"
RAY_FILE, DRIVER = "worker-1.err", "driver.log"
MEMORY = wire.TorchMemory(reserved_bytes=4_000_000_000)


def found(source: str, body: wire.EventBody = MEMORY, *, pid: int | None = 7, run: str = "demo") -> Found:
    return Found(body=body, origin=wire.Origin(source=source, pid=pid), run=run)


def test_the_second_teller_of_a_record_is_not_heard() -> None:
    seen = Deduplicator()
    assert seen.fresh(found(RAY_FILE), 10.0)
    assert not seen.fresh(found(DRIVER), 13.0)


def test_a_source_that_repeats_itself_is_heard_each_time() -> None:
    seen = Deduplicator()
    assert [seen.fresh(found(RAY_FILE), float(at)) for at in range(3)] == [True] * 3
    assert [seen.fresh(found(DRIVER), float(at)) for at in range(4)] == [False, False, False, True]


def test_after_the_window_the_same_figures_are_news() -> None:
    seen = Deduplicator()
    seen.fresh(found(RAY_FILE), 0.0)
    assert seen.fresh(found(DRIVER), WINDOW_SECONDS + 1)


def test_equal_figures_of_two_processes_are_two_records() -> None:
    seen = Deduplicator()
    assert seen.fresh(found(RAY_FILE, pid=7), 0.0)
    assert seen.fresh(found(DRIVER, pid=8), 0.0)


def test_a_step_is_known_by_its_figures_whatever_its_run_is_called_and_whoever_printed_it() -> None:
    seen = Deduplicator()
    step = wire.Step(step=3, step_seconds=95.25, rollout_seconds=30.5, phase_seconds={"rollout": 30.5, "adv": 0.25})
    assert seen.fresh(found(RAY_FILE, step, pid=9, run="demo/grpo"), 0.0)
    assert not seen.fresh(found("metrics.jsonl", step, pid=None, run="metrics"), 1.0)


def test_poor_steps_of_two_runs_are_two_steps() -> None:
    seen = Deduplicator()
    step = wire.Step(step=0, validation_only=True)
    assert seen.fresh(found(DRIVER, step, run="a"), 0.0)
    assert seen.fresh(found("other.log", step, run="b"), 0.0)


def test_what_a_source_worked_out_by_itself_makes_no_difference() -> None:
    seen = Deduplicator()
    assert seen.fresh(found(DRIVER, wire.DeviceOom(error="RuntimeError", phase="rollout")), 0.0)
    assert not seen.fresh(found(RAY_FILE, wire.DeviceOom(error="RuntimeError")), 0.0)


def test_a_real_run_followed_three_ways_is_counted_once() -> None:
    sources: list[Source] = [
        RaySource(str(LEAK / "ray-session-logs"), "start", None),
        LogSource(str(LEAK / "driver.log"), "start", None),
        LogSource(str(LEAK / "metrics.jsonl"), "start", None),
    ]
    seen = Deduplicator()
    fresh = []
    for source in sources:
        source.open()
        fresh.append([one for one in source.read(slow=True).found if seen.fresh(one, 0.0)])
        source.close()
    assert [len(one) for one in fresh] == [90, 1, 0]
    # The driver alone knows the error that it waited for: the other worker's.
    (only,) = fresh[1]
    assert isinstance(only.body, wire.DeviceOom)
    assert only.origin.pid == 25591
