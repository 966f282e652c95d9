"""What a run lets us see, and what is said of the rest."""

import json
from pathlib import Path
from typing import get_args

from tests.core.story import GIB, SHIPPED, Story

from oomwatch import wire
from oomwatch.core.coverage import Problem, coverage_of

CATALOGUE = Path(__file__).resolve().parents[2] / "frontend/oomwatch_frontend/catalogue.json"
STEP = wire.Step(
    step=1,
    step_seconds=94.0,
    rollout_seconds=30.0,
    reshard_seconds=3.2,
    phase_seconds={"rollout": 30.0},
    response_length_mean_tokens=600.0,
    torch_reserved_peak_bytes=40 * GIB,
)


def told(story: Story) -> dict[str, tuple[str | None, str | None, int | None]]:
    """signal -> (source, problem, step)"""
    coverage = coverage_of(story.engine.fleet.runs["r"].sights)
    return {one.signal: (one.source, one.problem, one.step) for one in coverage}


def test_a_run_that_prints_everything_has_no_problem() -> None:
    story = Story(SHIPPED).event(STEP)
    story.event(wire.TorchMemory(reserved_bytes=GIB)).event(wire.Reshard(marker="resume_kv_cache"))
    story.event(wire.Config(values={"data.train_batch_size": 60}))
    assert {problem for _, problem, _ in told(story).values()} == {None}
    assert story.engine.fleet.runs["r"].config == {"data.train_batch_size": 60}


def test_without_a_marker_the_step_lines_timing_stands_in_and_says_so() -> None:
    assert told(Story(SHIPPED).event(STEP))["reshard_cycles"] == ("driver.log", "no_reshard_marker_but_timed", None)


def test_a_figure_that_vanished_is_missing_since_its_step() -> None:
    story = Story(SHIPPED).event(STEP)
    for number in (2, 3):
        story.event(wire.Step(step=number, step_seconds=94.0))
    assert told(story)["rollout_seconds"] == ("driver.log", "missing_since_step", 2)
    assert told(story)["step_seconds"] == ("driver.log", None, None)


def test_a_figure_that_never_was_is_told_apart_from_one_that_vanished() -> None:
    assert told(Story(SHIPPED).event(wire.Step(step=1)))["rollout_seconds"] == (None, "not_in_step_line", None)


def test_a_validation_line_misses_nothing() -> None:
    story = Story(SHIPPED).event(STEP).event(wire.Step(step=1, validation_only=True))
    assert told(story)["rollout_seconds"] == ("driver.log", None, None)


def test_a_lifetime_peak_is_a_poor_source_of_torchs_memory() -> None:
    assert told(Story(SHIPPED).event(STEP))["torch_reserved"] == ("driver.log", "only_step_peaks", None)


def test_the_probe_is_the_best_source_of_torchs_memory() -> None:
    story = Story(SHIPPED, run="r").event(STEP)
    story.engine.observe(
        wire.Sample(seq=9, at=1.0, torch=(wire.TorchSample(pid=7, gpu="0", reserved_bytes=GIB),)), "n", 1.0
    )
    assert told(story)["torch_reserved"] == ("probe", None, None)


def test_before_the_first_step_line_nothing_is_blamed_on_the_trainer() -> None:
    story = Story(SHIPPED).event(wire.Config(values={}))
    assert told(story)["rollout_seconds"] == (None, "no_step_line", None)
    assert told(story)["config"] == ("driver.log", None, None)


def test_every_problem_has_its_sentence_and_no_sentence_is_left_over() -> None:
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    sentences = {key: texts for key, texts in catalogue.items() if key.startswith("coverage.problem.")}
    assert set(sentences) == {f"coverage.problem.{problem}" for problem in get_args(Problem)}
    assert {frozenset(texts) for texts in sentences.values()} == {frozenset(wire.LANGUAGES)}
