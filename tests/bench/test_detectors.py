"""The detectors say what they are said to say, and the score counts it as its page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.warnings.detectors import Episode, PredictLinear, by_level, by_rules, detectors, select
from bench.warnings.scenarios import make
from bench.warnings.score import applicable, judge, warning_of
from bench.warnings.series import leaking, lines_of, measure_series, read_series
from bench.warnings.simulate import truth_of
from bench.warnings.spec import Truth

from oomwatch import wire
from oomwatch.rulefile import parse_rules
from oomwatch.trace import Line

CARD = 100_000


def told(values: list[int], *, seconds: float = 1.0) -> Iterator[Line]:
    gpu = wire.GpuFacts(gpu="0", uuid="GPU-0", name="card", total_bytes=CARD)
    hello = wire.Hello(
        protocol=1, agent_version="0", node="n", session="s", sent_at=0.0, interval_seconds=1.0,
        facts=wire.NodeFacts(gpus=(gpu,)),
    )  # fmt: skip
    yield Line(now=0.0, node="n", message=hello)
    for place, used in enumerate(values, start=1):
        at = place * seconds
        sample = wire.Sample(seq=place, at=at, gpus=(wire.GpuSample(gpu="0", used_bytes=used),))
        yield Line(now=at, node="n", message=sample)
        yield Line(advance=at)


def test_a_level_seen_in_every_step_is_one_episode() -> None:
    sawtooth = [50_000] * 100 + [92_000] * 5
    seen = by_level(list(told(sawtooth * 6)), 0.90).episodes
    assert [(one.start, one.gpu) for one in seen] == [(101.0, "0")]


def test_a_level_that_was_quiet_for_long_is_another_episode() -> None:
    values = [95_000, *[10_000] * 700, 95_000]
    assert len(by_level(list(told(values)), 0.90).episodes) == 2


def test_predict_linear_fires_five_minutes_after_the_line_first_crosses() -> None:
    predictor = PredictLinear(1000.0)
    for second in range(0, 1200, 15):
        predictor.observe(float(second), 100.0 + second)
    # 100 + t + 1800 is above 1000 at once: from the first evaluation with two points on.
    assert predictor.spells == [(360.0, None)]


def test_predict_linear_says_nothing_of_a_flat_line_and_ends_when_a_rise_does() -> None:
    predictor = PredictLinear(1000.0)
    for second in range(0, 3600, 15):
        predictor.observe(float(second), 500.0)
    assert predictor.spells == []
    for second in range(3600, 5400, 15):
        predictor.observe(float(second), 500.0 + (second - 3600) * 0.2)
    for second in range(5400, 9000, 15):
        predictor.observe(float(second), 860.0)
    assert len(predictor.spells) == 1
    assert predictor.spells[0][1] is not None


def test_our_rules_are_asked_through_the_engine() -> None:
    rule = """
rules:
  - {alert: it, severity: warning, summary: it, when: {kind: threshold, metric: gpu_used_ratio, above: 90%}}
"""
    seen = by_rules(list(told([50_000, 95_000, 95_000])), parse_rules(rule).rules)
    assert [(one.alert, one.start, one.end) for one in seen.episodes] == [("it", 2.0, None)]
    assert seen.defects == 0


def test_an_unknown_detector_is_named() -> None:
    with pytest.raises(ValueError, match="no detector is called nonsense"):
        select(detectors(), ["nonsense"])


# ---------------------------------------------------------------- scoring


def failing() -> tuple[Truth, list[float]]:
    made = make("leak_fast", 3)
    return truth_of(made.spec, made.story), [one.at for one in made.story.finished]


def outcome(*episodes: Episode) -> tuple[int | None, float]:
    """Lead in steps and seconds."""
    made = make("leak_fast", 3)
    truth = truth_of(made.spec, made.story)
    found = warning_of(made.spec, made.story, truth, episodes)
    return (found.lead_steps, found.lead_seconds) if found else (None, 0.0)


def test_a_warning_that_stays_up_counts_from_its_beginning() -> None:
    truth, ends = failing()
    assert truth.oom_at is not None
    assert truth.oom_step is not None
    start = ends[truth.oom_step - 6]
    lead = outcome(Episode("memory_forecast", start, None, truth.gpu))
    assert lead == (4, truth.oom_at - start)


def test_a_warning_that_ended_before_the_failure_does_not_count() -> None:
    truth, ends = failing()
    assert outcome(Episode("memory_forecast", ends[-6], ends[-3], truth.gpu)) == (None, 0.0)


def test_a_warning_that_is_raised_again_counts_from_the_first_time() -> None:
    truth, ends = failing()
    first = Episode("memory_forecast", ends[-6], ends[-5], truth.gpu)
    again = Episode("memory_forecast", ends[-3], None, truth.gpu)
    assert outcome(first, again)[0] == outcome(first._replace(end=None))[0]


def test_a_warning_in_the_last_step_comes_too_late() -> None:
    truth, ends = failing()
    assert outcome(Episode("memory_forecast", ends[-1] + 1, None, truth.gpu)) == (None, 0.0)


def test_a_warning_of_another_gpu_or_of_no_forecast_does_not_count() -> None:
    _, ends = failing()
    assert outcome(Episode("memory_forecast", ends[-6], None, "7"))[0] is None
    assert outcome(Episode("rollout_time_jump", ends[-6], None, None))[0] is None


def test_what_is_lowered_to_information_is_no_false_alarm() -> None:
    made = make("roomy", 3)
    truth = truth_of(made.spec, made.story)
    lowered = Episode("gpu_memory_high", 5.0, 9.0, "0", steady=True)
    other = Episode("memory_forecast", 5.0, 9.0, "0")
    verdict = judge(made.spec, made.story, truth, [lowered, other], 0)
    assert (verdict.false_alarms, verdict.steady) == (("memory_forecast",), 1)


def test_a_remedy_is_tried_on_the_same_run() -> None:
    made = make("longest_update", 3)
    truth = truth_of(made.spec, made.story)
    key = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
    helps = wire.Remedy(remedy="halve", cause="longest_batch", key=key, value_to=1)
    idle = wire.Remedy(remedy="idle", cause="longest_batch", key="trainer.test_freq", value_to=7)
    advice = wire.Remedy(remedy="look", cause="longest_batch")
    assert applicable(made.spec, [advice, helps]) == [helps]
    warned = Episode("longest_batch_too_big", 100.0, None, truth.gpu, remedies=(idle, helps))
    assert judge(made.spec, made.story, truth, [warned], 0).tried == (False, True)


# ---------------------------------------------------------------- recorded series


def series_file(folder: Path) -> Path:
    path = folder / "flat.csv"
    rows = [f"a,{second},30000000000" for second in range(0, 40_000, 60)]
    path.write_text("series,t_seconds,used_bytes\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_leak_is_put_into_a_series_until_the_card_is_full(tmp_path: Path) -> None:
    (series,) = read_series(series_file(tmp_path))
    leaked = leaking(series, 16.0, 48 * 2**30)
    assert leaked is not None
    told_series, began, full = leaked
    assert 0.2 * series.seconds <= began < full
    assert told_series.points[-1] == (full, 48 * 2**30)
    assert len(list(lines_of(told_series, 48 * 2**30))) == 1 + 2 * len(told_series.points)


def test_a_leak_that_never_fills_the_card_is_not_counted(tmp_path: Path) -> None:
    (series,) = read_series(series_file(tmp_path))
    assert leaking(series, 0.1, 48 * 2**30) is None


def test_every_detector_is_measured_on_series(tmp_path: Path) -> None:
    found = measure_series(series_file(tmp_path), "48GiB", ["static", "predict"], None)
    assert set(found.figures["detectors"]) == {"static 90 %", "static 95 %", "predict_linear"}
    assert found.figures["detectors"]["static 90 %"]["false"] == 0
    assert found.figures["detectors"]["static 90 %"]["leaks"]["16 GiB/h"]["warned"] == 1


def test_a_series_with_a_bad_row_is_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("series,t_seconds,used_bytes\na,0,1\na,x,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.csv:3"):
        read_series(path)
