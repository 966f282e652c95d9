"""Logs of runs that are over: when each line was written, and what the cards and the host were seen to use."""

from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.backtest.inputs import (
    FIXTURES,
    GIB,
    RULES,
    judged,
    memory_line,
    only,
    sources,
    step_line,
    with_capacity,
    write,
)
from tests.core.story import shipped

from oomwatch import wire
from oomwatch.backtest.recording import BEGINNING
from oomwatch.backtest.source import InputError, Known
from oomwatch.core.engine import Engine
from oomwatch.trace import Line, give

WORKER = "(WorkerDict pid=7) "
DRIVER = "(TaskRunner pid=5) "
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB "
    "of which 412.75 MiB is free."
)


def _events(lines: list[Line]) -> list[tuple[float, wire.Event]]:
    return [(line.now or 0.0, line.message) for line in lines if isinstance(line.message, wire.Event)]


def _told(path: Path, known: Known | None = None) -> list[tuple[float, str]]:
    """Seconds from the start, and what each event is: its point, or its kind."""
    lines = list(sources(path, known=known)[0].lines())
    start = lines[0].now or 0.0
    return [
        (round(at - start, 2), getattr(event.body, "at_point", None) or str(event.body.__struct_config__.tag))
        for at, event in _events(lines)
    ]


def _used_at(path: Path, seconds: float, known: Known | None = None) -> dict[str, float]:
    """GiB in use on each card in the last sample up to a time."""
    lines = list(sources(path, known=known)[0].lines())
    start = lines[0].now or 0.0
    samples = [line.message for line in lines if isinstance(line.message, wire.Sample)]
    last = [sample for sample in samples if sample.at - start <= seconds][-1]
    return {gpu.gpu: round((gpu.used_bytes or 0) / GIB, 2) for gpu in last.gpus}


# ---------------------------------------------------------------- times


def test_steps_follow_each_other_by_their_own_durations(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", [step_line(1), step_line(2, gen=10.0), step_line(3)])
    assert _told(log) == [(80, "step"), (140, "step"), (220, "step")]


def test_memory_lines_are_laid_over_the_phases_of_their_step(tmp_path: Path) -> None:
    """The rollout takes 30 s and ends with the load; after that the actor is updated for 50 s."""
    log = write(
        tmp_path / "a.log",
        [
            memory_line("After resume kv_cache", 60),
            memory_line("Before load_fsdp_model_to_gpu", 8),
            memory_line("After load_fsdp_model_to_gpu", 41),
            memory_line("Before update_actor", 42),
            memory_line("After update_actor", 43),
            step_line(1),
        ],
    )
    assert [told for told in _told(log) if told[1] != "reshard"] == [
        (0, "After resume kv_cache"),
        (30, "Before load_fsdp_model_to_gpu"),
        (30, "After load_fsdp_model_to_gpu"),
        (30, "Before update_actor"),
        (80, "After update_actor"),
        (80, "step"),
    ]


def test_a_line_of_the_next_rollout_ends_the_step_that_it_stands_in(tmp_path: Path) -> None:
    """verl 0.9 wakes the engine before it prints the step line."""
    lines = [memory_line("Before load_fsdp_model_to_gpu", 8)]
    lines += [memory_line("After update_weights", 40), memory_line("After resume kv_cache", 60)]
    log = write(tmp_path / "a.log", [*lines, step_line(1, timing_s__update_weights=4.0, timing_s__step=84.0)])
    told = [one for one in _told(log) if one[1] != "reshard"]
    assert told == [
        (30, "Before load_fsdp_model_to_gpu"),
        (80, "After update_weights"),
        (84, "After resume kv_cache"),
        (84, "step"),
    ]


def test_validation_is_counted_after_the_step_unless_the_step_holds_it(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.log", [step_line(1, timing_s__testing=20.0), step_line(2)])
    assert [at for at, _ in _told(outside)] == [100, 180]
    within = write(tmp_path / "within.log", [step_line(1, timing_s__testing=20.0, timing_s__step=100.0), step_line(2)])
    assert [at for at, _ in _told(within)] == [100, 180]


def test_times_in_the_lines_are_believed(tmp_path: Path) -> None:
    stamps = ["2026-11-29 10:00:00,500 ", "2026-11-29 10:02:00,000 ", "2026-11-29 10:07:30,250 "]
    lines = [step_line(step, envelope=stamp + "INFO ") for step, stamp in enumerate(stamps, start=1)]
    log = write(tmp_path / "a.log", lines)
    trace = list(sources(log)[0].lines())
    assert [round(at - (trace[0].now or 0), 2) for at, _ in _events(trace)] == [0, 119.5, 449.75]
    assert trace[0].now == datetime(2026, 11, 29, 10, 0, 0, 500_000, tzinfo=timezone.utc).timestamp()


def test_a_few_dated_lines_date_no_log(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", ["2026-11-29 10:00:00,500 INFO worker.py: started", step_line(1), step_line(2)])
    trace = list(sources(log)[0].lines())
    assert trace[0].now == BEGINNING
    assert [at for at, _ in _told(log)] == [80, 160]


def test_times_that_are_faster_than_the_steps_are_not_believed(tmp_path: Path) -> None:
    """The log was written anew, as by a test that plays it: its steps took 80 s, and their lines are a second apart."""
    lines = [step_line(step, envelope=f"2026-11-29 10:00:0{step},000 INFO ") for step in range(1, 4)]
    assert [at for at, _ in _told(write(tmp_path / "a.log", lines))] == [80, 160, 240]


def test_times_without_a_year_are_times_too(tmp_path: Path) -> None:
    lines = [step_line(step, envelope=f"INFO 11-29 10:0{2 * step}:00 [a.py:1] ") for step in range(1, 4)]
    assert [at for at, _ in _told(write(tmp_path / "a.log", lines))] == [0, 120, 240]


def test_a_step_that_is_told_twice_in_a_row_is_one_step(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", [step_line(1), step_line(2), step_line(2), step_line(3)])
    assert [at for at, _ in _told(log)] == [80, 160, 240]


def test_a_packed_log_with_coloured_envelopes_and_carriage_returns_reads_the_same(tmp_path: Path) -> None:
    plain = [
        memory_line("After resume kv_cache", 60),
        step_line(1),
        memory_line("After resume kv_cache", 61),
        step_line(2),
    ]
    dressed = [f"\x1b[36m(WorkerDict pid=7)\x1b[0m {line}\r" for line in plain]
    first, second = write(tmp_path / "plain.log", plain), write(tmp_path / "dressed.log.gz", dressed)
    assert _told(first) == _told(second)


def test_a_host_that_ran_out_of_memory_is_the_end_of_the_input_too(tmp_path: Path) -> None:
    killed = (
        "(raylet) Memory on the node (IP: 192.0.2.2, ID: abc) where the task was running was 726.33GB / 760.00GB "
        "(0.955696), which exceeds the memory usage threshold of 0.95."
    )
    log = write(
        tmp_path / "a.log", [step_line(step, perf__cpu_memory_used_gb=600.0) for step in range(1, 4)] + [killed]
    )
    one = only(judged(log))
    assert one.oom_at_s == 241
    hello = next(sources(log)[0].lines()).message
    assert isinstance(hello, wire.Hello)
    assert hello.facts.host is not None
    assert hello.facts.host.memory_total_bytes == 760 * GIB


def test_an_error_after_the_last_step_stands_in_the_midst_of_its_phase(tmp_path: Path) -> None:
    frames = ["Traceback (most recent call last):", '  File "a.py", line 3, in update_actor']
    log = write(
        tmp_path / "a.log",
        [step_line(1), step_line(2), memory_line("After resume kv_cache", 60), *frames, OOM],
    )
    one = only(judged(log))
    assert one.oom_at_s == 160 + 30 + 25
    assert one.steps == 2


# ---------------------------------------------------------------- readings


def test_a_reading_is_held_until_the_next_line_tells_another(tmp_path: Path) -> None:
    log = write(
        tmp_path / "a.log",
        [memory_line("After resume kv_cache", 60), memory_line("Before load_fsdp_model_to_gpu", 8), step_line(1)],
    )
    assert _used_at(log, 29) == {"0": 60}
    assert _used_at(log, 31) == {"0": 8}
    assert _used_at(log, 79) == {"0": 8}


def test_each_process_that_prints_memory_lines_is_a_card_of_the_size_that_it_tells(tmp_path: Path) -> None:
    lines = [
        memory_line("After resume kv_cache", 60 + rank, envelope=f"(WorkerDict pid={700 + rank}) ") for rank in range(2)
    ]
    log = write(tmp_path / "a.log", [*lines, step_line(1, envelope=DRIVER)])
    assert _used_at(log, 20) == {"0": 60, "1": 61}
    hello = next(sources(log)[0].lines()).message
    assert isinstance(hello, wire.Hello)
    assert [(gpu.gpu, gpu.total_bytes) for gpu in hello.facts.gpus] == [("0", 80 * GIB), ("1", 80 * GIB)]


def test_the_engine_sees_the_cards_run_phase_and_torch_as_if_it_were_live() -> None:
    engine = Engine(RULES)
    for line in sources(FIXTURES / "verl-0.9.1-leak" / "driver.log")[0].lines():
        give(engine, line)
    run = engine.fleet.runs["demo/qwen7b_grpo"]
    node = engine.fleet.nodes["driver.log"]
    assert len(run.steps) == 8
    assert node.gpus["0"].run == "demo/qwen7b_grpo"
    assert node.gpus["0"].torch_reserved.latest() is not None
    assert {span.phase for span in run.timeline.spans()} >= {"rollout", "update_actor", "update_weights", "ref"}
    assert run.config["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"] == 8


def test_step_lines_alone_need_the_size_of_the_card(tmp_path: Path) -> None:
    lines = [step_line(step, perf__max_memory_reserved_gb=70.0 + step) for step in range(1, 9)]
    log = write(tmp_path / "a.log", lines)
    without = only(judged(log))
    assert without.gpus == 0
    assert "give --capacity 80GiB" in without.notes[0]
    one = only(judged(log, known=with_capacity(80)))
    assert (one.gpus, one.notes) == (1, ())
    assert [alert.alert for alert in one.alerts] == ["full"]


def test_the_hosts_use_is_judged_where_its_size_is_said(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", [step_line(step, perf__cpu_memory_used_gb=90.0) for step in range(1, 4)])
    lines = list(sources(log, known=Known(host_memory_bytes=100 * GIB))[0].lines())
    hosts = [line.message.host for line in lines if isinstance(line.message, wire.Sample)]
    assert {host.memory_used_bytes for host in hosts if host} == {90 * GIB}
    assert any("--host-memory" in note for note in only(judged(log, known=with_capacity(80))).notes)


# ---------------------------------------------------------------- the four runs of verl 0.9.1


@pytest.mark.parametrize(
    ("name", "steps", "oom", "alerts"),
    [
        ("healthy", 14, False, []),
        ("slow-rollout", 14, False, ["slow"]),
        ("leak", 8, True, ["full", "gone", "gone"]),
        ("sleep-residue", 5, True, ["full", "gone", "gone"]),
    ],
)
@pytest.mark.parametrize("as_folder", [False, True])
def test_a_finished_log_alone_tells_what_happened_and_its_folder_the_same(
    name: str, steps: int, oom: bool, alerts: list[str], as_folder: bool
) -> None:
    folder = FIXTURES / f"verl-0.9.1-{name}"
    one = only(judged(folder if as_folder else folder / "driver.log"))
    assert one.steps == steps
    assert (one.oom_at_s is not None, one.warned) == (oom, True if oom else None)
    assert [alert.alert for alert in one.alerts] == alerts
    if oom:
        assert one.lead_steps is not None
        assert one.lead_steps >= 2


def test_the_public_case_of_residue_is_told_three_steps_before_its_end() -> None:
    """It has five steps in all: what grows in each of them needs no usual level first."""
    log = FIXTURES / "verl-0.9.1-sleep-residue" / "driver.log"
    one = only(judged(log, rules=shipped("sleep_residue_grows")))
    assert (one.steps, one.warned, one.lead_steps) == (5, True, 3)


def test_the_folder_of_a_run_says_exactly_what_its_driver_log_says() -> None:
    """The file logger and Ray's own files repeat it."""
    folder = FIXTURES / "verl-0.9.1-leak"
    assert _told(folder) == _told(folder / "driver.log")


def test_the_files_of_a_ray_session_alone_are_laid_out_by_their_rounds() -> None:
    """Memory lines stand in one process' file, steps in another's, and neither has times."""
    folder = FIXTURES / "verl-0.9.1-leak"
    session = only(judged(folder / "ray-session-logs"))
    driver = only(judged(folder / "driver.log"))
    assert session.steps == driver.steps
    assert session.oom_at_s == pytest.approx(driver.oom_at_s, abs=20)
    assert session.lead_steps == driver.lead_steps


def test_the_file_loggers_lines_alone_tell_the_steps() -> None:
    one = only(judged(FIXTURES / "verl-0.9.1-slow-rollout" / "metrics.jsonl"))
    assert (one.steps, [(alert.alert, alert.severity, alert.warns) for alert in one.alerts]) == (
        14,
        [("slow", "info", False)],
    )


def test_a_broken_line_of_the_file_logger_is_told_with_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", ['{"step": 1, "data": {"timing_s/gen": NaN}}', '{"step": 2, "dat'])
    with pytest.raises(InputError, match=r"metrics\.jsonl:2: a line .* of the file logger is expected"):
        sources(path)


def test_a_table_beside_a_log_begins_when_the_log_does_and_gives_its_cards(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write(tmp_path / "run" / "driver.log", [memory_line("After resume kv_cache", 60), step_line(1), step_line(2)])
    rows = [f"2026/11/29 13:5{second // 60}:{second % 60:02}.000, 4, 30000 MiB, 81920 MiB" for second in range(160)]
    write(tmp_path / "run" / "gpus.csv", ["timestamp, index, memory.used [MiB], memory.total [MiB]", *rows])
    write(tmp_path / "run" / "notes.txt", ["nothing that anybody would recognise"])
    one = only(judged(tmp_path / "run"))
    assert (one.steps, one.gpus, one.duration_s) == (2, 1, 160)
    assert _used_at(tmp_path / "run", 100) == {"4": 29.3}
    together = only(judged(tmp_path / "run" / "driver.log", tmp_path / "run" / "gpus.csv", together=True))
    assert (together.steps, together.gpus, together.duration_s) == (2, 1, 160)


def test_hydras_configuration_beside_a_log_is_the_runs(tmp_path: Path) -> None:
    write(tmp_path / "driver.log", [step_line(1)])
    (tmp_path / ".hydra").mkdir()
    write(tmp_path / ".hydra" / "config.yaml", ["actor_rollout_ref: {rollout: {gpu_memory_utilization: 0.6}}"])
    bodies = [event.body for _, event in _events(list(sources(tmp_path)[0].lines()))]
    assert isinstance(bodies[0], wire.Config)
    assert bodies[0].values == {"actor_rollout_ref.rollout.gpu_memory_utilization": 0.6}
