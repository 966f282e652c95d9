"""A growth is measured between moments that are alike; what a program loads, or takes in another phase, is none."""

import pytest
from tests.core.story import GIB, Story, rules_of

from oomwatch import wire
from oomwatch.core.evidence import gather
from oomwatch.core.likemoments import READINGS_MAX, Tables, held_in
from oomwatch.core.parts import Part, Parts, named
from oomwatch.core.phases import Span
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import Verdict

ROLLOUT = Span(0, 40, "rollout", 1, "mark")
LOG_PROB = Span(40, 60, "old_log_prob", 1, "mark")
UPDATE = Span(60, 100, "update_actor", 1, "mark")
ACTIVE = Verdict("active")
STEP = (ROLLOUT, LOG_PROB, UPDATE)
HIGH = "    severity: warning\n    when: {kind: threshold, metric: gpu_used_ratio, above: 90%}\n    for: 5s\n"
SECONDS = {"rollout": 5.0, "old_log_prob": 3.0, "update_actor": 3.0}


def table(engine: float, trainer: float, *others: tuple[str, float]) -> dict[str, float]:
    return {"engine": engine, "trainer": trainer, **dict(others)}


def test_an_engine_is_compared_while_it_sleeps_and_a_trainer_while_the_rollout_runs() -> None:
    readings = [(10.0, table(56, 5)), (50.0, table(4, 30)), (80.0, table(6, 46))]
    assert held_in(readings, STEP) == {"engine": 4, "trainer": 5}


def test_a_kind_that_was_read_at_other_moments_alone_is_not_known() -> None:
    assert held_in([(10.0, table(56, 5))], STEP) == {"engine": None, "trainer": 5}
    assert held_in([(80.0, table(4, 46))], STEP) == {"engine": 4, "trainer": None}
    assert held_in([], STEP) is None


def test_a_reading_close_to_a_cut_that_a_step_line_told_counts_for_neither_side() -> None:
    loosely = [one._replace(how="step line") for one in STEP]
    assert held_in([(40.5, table(56, 5))], loosely) == {"engine": None, "trainer": None}
    assert held_in([(40.5, table(4, 5))], STEP) == {"engine": 4, "trainer": None}


def test_a_stranger_is_compared_at_any_moment_and_held_nothing_where_it_was_in_no_table() -> None:
    readings = [(10.0, table(56, 5, ("stranger", 9.0))), (80.0, table(4, 46, ("stranger", 8.0)))]
    assert (held_in(readings, STEP) or {})["stranger"] == 8
    assert (held_in([*readings, (90.0, table(4, 46))], STEP) or {})["stranger"] == 0


def test_without_phases_and_without_a_rollout_the_whole_step_is_one_moment() -> None:
    readings = [(10.0, table(56, 5)), (80.0, table(4, 46))]
    assert held_in(readings, ()) == {"engine": 4, "trainer": 5}
    assert held_in(readings, (LOG_PROB, UPDATE)) == {"engine": 4, "trainer": 5}


def test_of_an_endless_step_fewer_tables_are_kept_that_cover_all_of_it() -> None:
    tables = Tables()
    for second in range(0, 100_000, 10):
        tables.add(float(second), table(1, 1))
        assert len(tables) <= READINGS_MAX
    kept = tables.within(0, 100_000)
    assert len(kept) == len(tables)
    assert kept[0] == (0.0, table(1, 1))
    assert kept[-1][0] > 90_000


def test_a_kind_that_is_in_no_table_of_the_next_step_is_none_of_its_kinds() -> None:
    tables = Tables()
    tables.add(10.0, table(56, 5, ("stranger", 9.0)))
    tables.add(20.0, table(56, 5))
    tables.add(30.0, {"trainer": 6.0})
    assert tables.within(15.0, 25.0) == [(20.0, table(56, 5))]
    assert tables.after(20.0).within(0.0, 100.0) == [(30.0, {"trainer": 6.0})]


def short_steps(story: Story, count: int, *, leak_gib: float = 0.0) -> Story:
    """Steps of eleven seconds, so that the table of every tenth second meets another phase each time."""
    for number in range(1, count + 1):
        for phase, seconds in SECONDS.items():
            for _ in range(int(seconds)):
                story.wait(1)
                tell(story, awake=phase == "rollout", more_gib=leak_gib * number)
        story.event(wire.Step(step=number, step_seconds=11.0, phase_seconds=SECONDS), run="r")
    return story


def tell(story: Story, *, awake: bool, more_gib: float) -> None:
    engine, trainer = (56.0 if awake else 4.0 + more_gib), (6.0 if awake else 40.0)
    processes = (
        wire.GpuProcess(pid=1, used_bytes=int(engine * GIB), name="VLLM::Worker", run="r", role="rollout"),
        wire.GpuProcess(pid=2, used_bytes=int(trainer * GIB), name="ray::WorkerDict", run="r", role="actor"),
    )
    used = int((engine + trainer) * GIB)
    story.sample(wire.GpuSample(gpu="0", used_bytes=used, processes=processes if story.now % 10 < 1 else None))


def parts_of(story: Story) -> dict[str, Part]:
    found = gather(story.engine.fleet, Subject("gpu", "n", "0"), "device", "", ACTIVE, story.now)
    return dict(named(found.parts))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 13, 20])
def test_a_short_step_whose_table_meets_another_phase_each_time_shows_no_growth(count: int) -> None:
    story = short_steps(Story(rules_of(HIGH), run="r"), count)
    assert {kind: part.rise_bytes for kind, part in parts_of(story).items()} == {"engine": 0, "trainer": 0}


def test_what_a_sleeping_engine_keeps_more_is_its_growth_and_no_more_than_that() -> None:
    story = short_steps(Story(rules_of(HIGH), run="r"), 20, leak_gib=1.0)
    rises = {kind: part.rise_bytes / GIB for kind, part in parts_of(story).items()}
    assert 8 <= rises["engine"] <= 18  # the tables of some steps met it awake alone
    assert rises["trainer"] == 0


def minutes(parts: Parts, count: int, *sizes: tuple[str, float, str], start: int = 0) -> Parts:
    for second in range(start * 60, (start + count) * 60, 10):
        parts.observe(second, sizes)
    return parts


@pytest.mark.parametrize("kind", ["worker", "driver", "engine", "trainer"])
def test_a_run_that_starts_long_after_the_agent_loads_and_does_not_grow(kind: str) -> None:
    parts = minutes(Parts(), 20, ("other", 3.0, "daemon"))
    minutes(parts, 3, ("other", 3.0, "daemon"), (kind, 100.0, "ours"), start=20)
    assert named(parts)[kind].rise_bytes == 0
    minutes(parts, 12, ("other", 3.0, "daemon"), (kind, 300.0, "ours"), start=23)
    assert named(parts)[kind].rise_bytes == 0


def test_a_run_that_is_started_again_is_measured_from_then_on() -> None:
    parts = minutes(Parts(), 20, ("worker", 300.0, "w"))
    minutes(parts, 2, ("other", 3.0, "daemon"), start=20)
    minutes(parts, 12, ("worker", 300.0, "w"), start=22)
    assert named(parts)["worker"].rise_bytes == 0


def test_a_swing_that_is_longer_than_the_window_is_no_growth() -> None:
    parts = Parts()
    for minute in range(36):
        minutes(parts, 1, ("worker", 50.0 if minute % 12 < 6 else 20.0, "w"), start=minute)
        assert named(parts)["worker"].rise_bytes == 0, minute


def test_what_grows_all_the_time_grows_whatever_its_length() -> None:
    parts = Parts()
    for minute in range(36):
        minutes(parts, 1, ("worker", 50.0 + minute, "w"), start=minute)
    part = named(parts)["worker"]
    assert part.rise_bytes == pytest.approx(20, abs=2)
    assert part.rise_seconds == 20 * 60
