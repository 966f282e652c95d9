"""The phases of a run: what marks tell live, and how the step line cuts."""

from itertools import pairwise

import pytest

from oomwatch import wire
from oomwatch.core.phases import SPANS_KEPT, Span, Timeline

GIB = 2**30
TIMES = {"rollout": 30.0, "old_log_prob": 8.0, "update_actor": 44.0, "update_weights": 3.0}


def memory(at_point: str, phase: str | None = None, ends: str | None = None) -> wire.TorchMemory:
    return wire.TorchMemory(reserved_bytes=GIB, at_point=at_point, phase=phase, ends_phase=ends)


def step(number: int = 1, **times: float) -> wire.Step:
    seconds = TIMES | times
    return wire.Step(
        step=number,
        step_seconds=sum(value for name, value in seconds.items() if name != "validation"),
        phase_seconds=seconds,
    )


def told(timeline: Timeline) -> list[tuple[float, float, str, str]]:
    return [(span.start, span.end, span.phase, span.how) for span in timeline.spans()]


def test_a_step_line_alone_cuts_backwards_from_its_arrival() -> None:
    timeline = Timeline()
    timeline.observe(1000.0, step())
    assert told(timeline) == [
        (915.0, 945.0, "rollout", "step line"),
        (945.0, 953.0, "old_log_prob", "step line"),
        (953.0, 997.0, "update_actor", "step line"),
        (997.0, 1000.0, "update_weights", "step line"),
    ]


def test_validation_comes_after_the_step_and_before_its_line() -> None:
    timeline = Timeline()
    timeline.observe(1000.0, step(validation=60.0))
    assert told(timeline)[-2:] == [
        (937.0, 940.0, "update_weights", "step line"),
        (940.0, 1000.0, "validation", "step line"),
    ]


def test_steps_follow_each_other_without_overlap() -> None:
    timeline = Timeline()
    for number in range(1, 6):
        timeline.observe(number * 85.5, step(number))
    spans = list(timeline.spans())
    assert all(earlier.end <= later.start for earlier, later in pairwise(spans))
    assert [span.step for span in spans] == [number for number in range(1, 6) for _ in TIMES]


def test_a_marked_rollout_is_known_while_it_runs() -> None:
    timeline = Timeline()
    timeline.observe(10.0, memory("After resume kv_cache", "rollout"))
    assert timeline.current() == "rollout"
    timeline.observe(40.0, memory("Before load_fsdp_model_to_gpu", ends="rollout"))
    assert timeline.current() is None
    assert told(timeline) == [(10.0, 40.0, "rollout", "mark")]


def test_offloading_does_not_end_a_rollout() -> None:
    timeline = Timeline()
    timeline.observe(10.0, memory("After resume kv_cache", "rollout"))
    timeline.observe(11.0, memory("After offload_fsdp_model_to_cpu"))
    assert timeline.current() == "rollout"


def test_what_a_point_is_called_ends_nothing_by_itself() -> None:
    timeline = Timeline()
    timeline.observe(10.0, memory("After resume kv_cache", "rollout"))
    timeline.observe(11.0, memory("Before load_fsdp_model_to_gpu"))
    timeline.observe(12.0, memory("Before something of another trainer", ends="update_actor"))
    assert timeline.current() == "rollout"
    timeline.observe(40.0, memory("Before something of another trainer", ends="rollout"))
    assert told(timeline) == [(10.0, 40.0, "rollout", "mark")]


def test_sleep_and_wake_lines_bound_a_rollout() -> None:
    timeline = Timeline()
    timeline.observe(5.0, wire.EngineWake(tags=("weights",)))
    timeline.observe(10.0, wire.EngineWake(tags=("kv_cache",)))
    timeline.observe(40.0, wire.EngineSleep(freed_bytes=GIB))
    assert told(timeline) == [(5.0, 10.0, "update_weights", "mark"), (10.0, 40.0, "rollout", "mark")]


def verl_step(timeline: Timeline, began_at: float, number: int) -> float:
    """A step as verl 0.9 prints it at DEBUG level; returns when its successor's rollout begins."""
    timeline.observe(began_at + 31.0, memory("Before load_fsdp_model_to_gpu", ends="rollout"))
    timeline.observe(began_at + 84.0, memory("Before resume weights", "update_weights"))
    timeline.observe(began_at + 87.0, memory("After resume kv_cache", "rollout"))
    timeline.observe(began_at + 88.0, step(number))
    return began_at + 87.0


def test_marks_make_a_cut_exact_where_they_are() -> None:
    timeline = Timeline()
    timeline.observe(100.0, memory("After resume kv_cache", "rollout"))
    following = verl_step(timeline, 100.0, 1)
    assert told(timeline)[:4] == [
        (100.0, 131.0, "rollout", "mark"),
        (131.0, 138.0, "old_log_prob", "step line"),
        (138.0, 182.0, "update_actor", "step line"),
        (182.0, 184.0, "idle", "step line"),
    ]
    assert told(timeline)[4] == (184.0, 187.0, "update_weights", "mark")
    assert timeline.current() == "rollout"
    verl_step(timeline, following, 2)
    spans = list(timeline.spans())
    assert all(earlier.end <= later.start for earlier, later in pairwise(spans))
    assert next(span for span in spans if span.step == 2 and span.phase == "rollout").start == following


def test_a_log_replayed_at_speed_shares_the_time_there_was() -> None:
    timeline = Timeline()
    for number in range(1, 4):
        timeline.observe(float(number), step(number))
    last = [span for span in timeline.spans() if span.step == 3]
    assert last[0].start == pytest.approx(2.0)
    assert last[-1].end == pytest.approx(3.0)
    assert last[0].end - last[0].start == pytest.approx(30 / 85)


def test_spans_are_asked_for_by_time() -> None:
    timeline = Timeline()
    timeline.observe(1000.0, step())
    assert [span.phase for span in timeline.spans(950.0, 960.0)] == ["old_log_prob", "update_actor"]


def test_a_run_that_marks_its_phases_and_tells_of_no_step_keeps_the_last_ones() -> None:
    timeline = Timeline()
    for begun in range(SPANS_KEPT + 10):
        timeline.observe(float(begun), memory("at a point", "rollout" if begun % 2 else "update_actor"))
    spans = told(timeline)
    assert len(spans) == SPANS_KEPT + 1
    assert spans[-2][:2] == (SPANS_KEPT + 8.0, SPANS_KEPT + 9.0)


def test_of_very_many_steps_the_last_ones_are_kept() -> None:
    timeline = Timeline()
    for number in range(SPANS_KEPT // 2):
        timeline.observe(100.0 * number, step(number))
    spans = list(timeline.spans())
    assert len(spans) == SPANS_KEPT
    assert (spans[0].step, spans[-1].step) == (SPANS_KEPT // 4, SPANS_KEPT // 2 - 1)


def test_a_step_line_that_is_older_than_the_last_leaves_no_validation_without_an_end() -> None:
    timeline = Timeline()
    timeline.observe(1000.0, step())
    timeline.observe(990.0, step(2, validation=5.0))
    assert all(span.end > span.start for span in timeline.spans())


def test_a_step_without_timings_cuts_nothing() -> None:
    timeline = Timeline()
    timeline.observe(1000.0, wire.Step(step=1))
    assert list(timeline.spans()) == []


def test_an_open_phase_is_shown_as_a_span_that_has_only_begun() -> None:
    timeline = Timeline()
    timeline.observe(10.0, memory("Before update policy", "update_actor"))
    assert list(timeline.spans()) == [Span(10.0, 10.0, "update_actor", None, "mark")]
