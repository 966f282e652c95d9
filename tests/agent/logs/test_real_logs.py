"""Output of real verl 0.9.1 loggers inside real Ray 2.60: every event of a log, and nothing else."""

from collections import Counter
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.splitter import LineSplitter

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
EXCERPT = Path(__file__).parent / "fixtures" / "verl-0.9.1-excerpt.log"
GIB = 1024**3


def read(path: Path) -> list[Recognised]:
    reader, splitter = LineReader(), LineSplitter()
    found = [one for chunk in (splitter.feed(path.read_bytes()), splitter.flush()) for one in reader.read(chunk)]
    return [*found, *reader.end()]


@pytest.mark.parametrize(
    ("scenario", "counts"),
    [
        ("healthy", {"Config": 1, "TorchMemory": 98, "Reshard": 28, "Step": 14}),
        ("slow-rollout", {"Config": 1, "TorchMemory": 98, "Reshard": 28, "Step": 14}),
        ("leak", {"Config": 1, "TorchMemory": 61, "Reshard": 18, "Step": 8, "DeviceOom": 2}),
        ("sleep-residue", {"Config": 1, "TorchMemory": 42, "Reshard": 12, "Step": 5, "DeviceOom": 2}),
    ],
)
def test_a_drivers_log_gives_its_events_and_no_more(scenario: str, counts: dict[str, int]) -> None:
    found = read(FIXTURES / f"verl-0.9.1-{scenario}" / "driver.log")
    assert Counter(type(one.body).__name__ for one in found) == counts
    assert {one.run for one in found} == {"demo/qwen7b_grpo"}


def test_the_drivers_own_file_tells_its_errors_too() -> None:
    (path,) = (FIXTURES / "verl-0.9.1-leak" / "ray-session-logs").glob("*-25521.err")
    assert [one.pid for one in read(path) if isinstance(one.body, wire.DeviceOom)] == [25520]


@pytest.mark.parametrize("scenario", ["healthy", "slow-rollout", "leak", "sleep-residue"])
def test_the_file_logger_and_the_drivers_log_tell_the_same_steps(scenario: str) -> None:
    folder = FIXTURES / f"verl-0.9.1-{scenario}"
    steps = [[one.body for one in read(folder / name) if isinstance(one.body, wire.Step)] for name in
             ("driver.log", "metrics.jsonl")]  # fmt: skip
    assert steps[0] == steps[1]


def test_a_slow_rollout_shows_in_the_steps() -> None:
    found = read(FIXTURES / "verl-0.9.1-slow-rollout" / "driver.log")
    slow = [one.body.step for one in found if isinstance(one.body, wire.Step) and (one.body.rollout_seconds or 0) > 90]
    assert slow == [5, 6]


def test_the_workers_of_a_failed_run_are_told_apart() -> None:
    found = [one for one in read(FIXTURES / "verl-0.9.1-leak" / "driver.log") if isinstance(one.body, wire.DeviceOom)]
    assert [(one.pid, one.actor, one.ip) for one in found] == [
        (25591, "WorkerDict", "192.0.2.2"),  # what the driver waited for
        (25520, "WorkerDict", "192.0.2.2"),  # and the other, whose error nobody fetched
    ]


def gib(number: float) -> int:
    return round(number * GIB)


def memory(
    head: str, phase: str | None, allocated: float, reserved: float, used: float, ends: str | None = None
) -> wire.TorchMemory:
    return wire.TorchMemory(
        reserved_bytes=gib(reserved),
        allocated_bytes=gib(allocated),
        device_used_bytes=gib(used),
        device_total_bytes=gib(79.15),
        at_point=head,
        phase=phase,
        ends_phase=ends,
        engine_asleep=head in ("Before resume weights", "Before load_fsdp_model_to_gpu") or None,
    )


OUT_OF_MEMORY = wire.DeviceOom(
    error="torch.OutOfMemoryError",
    tried_bytes=gib(2.32),
    total_bytes=gib(79.15),
    free_bytes=round(412.75 * 1024**2),
    process_used_bytes=gib(78.74),
    allocated_bytes=gib(71.02),
    reserved_unallocated_bytes=gib(5.11),
    local_index=0,
    phase="rollout",
)


def test_one_step_and_the_end_of_a_leaking_run_event_by_event() -> None:
    assert [one.body for one in read(EXCERPT)] == [
        memory("Before resume weights", "update_weights", 3.95, 5.95, 11.35),
        memory("After resume weights", "update_weights", 3.90, 5.90, 27.30),
        memory("After update_weights", "update_weights", 18.05, 24.05, 44.45),
        wire.Reshard(marker="update_weights"),
        memory("After offload model to cpu", "update_weights", 1.87, 3.87, 26.27),
        memory("After resume kv_cache", "rollout", 2.01, 4.01, 60.41),
        wire.Reshard(marker="resume_kv_cache"),
        memory("Before load_fsdp_model_to_gpu", None, 2.96, 4.96, 10.36, ends="rollout"),
        memory("After load_fsdp_model_to_gpu", None, 34.87, 41.87, 47.27, ends="rollout"),
        wire.Step(
            step=1,
            step_seconds=94.05041866726162,
            rollout_seconds=29.850418667261618,
            reshard_seconds=3.2,
            phase_seconds={
                "rollout": 29.850418667261618,
                "reward": 0.4,
                "old_log_prob": 8.4,
                "ref": 7.9,
                "adv": 0.2,
                "update_actor": 44.1,
                "update_weights": 3.2,
            },
            torch_reserved_peak_bytes=gib(44.40251791131397),
            torch_allocated_peak_bytes=gib(37.40251791131397),
            host_used_bytes=gib(414.0),
            response_length_mean_tokens=615.7719863559959,
            response_length_max_tokens=1601.0071645255894,
            response_clip_ratio=0.0,
            rollout_ms_per_token=0.06732835486879801,
            tokens_total=666555.0,
        ),
        memory("After offload model to cpu", "update_weights", 2.02, 4.02, 45.62),
        memory("After resume kv_cache", "rollout", 2.11, 4.11, 79.10),
        wire.Reshard(marker="resume_kv_cache"),
        OUT_OF_MEMORY,
        OUT_OF_MEMORY,
    ]
