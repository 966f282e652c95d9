"""What counts as a warning, a lead and a false alarm."""

from collections.abc import Sequence

from oomwatch import wire
from oomwatch.backtest.drive import Driven, Watched
from oomwatch.backtest.result import InputResult
from oomwatch.backtest.score import judged, spread, summed_up
from oomwatch.rulefile import parse_rules
from oomwatch.trace import Line

GIB = 2**30
START = 1000.0
RULES = parse_rules(
    """
rules:
  - {alert: full, when: {kind: threshold, metric: gpu_used_ratio, above: 85%}, summary: s}
  - {alert: full, severity: critical, when: {kind: threshold, metric: gpu_used_ratio, above: 95%}, summary: s}
  - {alert: told, severity: info, when: {kind: threshold, metric: gpu_used_ratio, above: 50%}, summary: s}
  - {alert: gone, severity: critical, when: {kind: event, of: [device_oom]}, summary: s}
  - {alert: hot, when: {kind: threshold, metric: gpu_temperature_celsius, above: 90}, summary: s}
  - {alert: host, when: {kind: threshold, metric: host_memory_ratio, above: 90%}, summary: s}
"""
).rules
CAUSES = (wire.Cause(cause="leak", score=0.8), wire.Cause(cause="fragmentation", score=0.1))


def alert(
    fired_s: float,
    ended_s: float | None = None,
    *,
    name: str = "full",
    severity: wire.Severity = "warning",
    lowered_s: float | None = None,
    gpu: str = "0",
) -> list[wire.Transition]:
    """The transitions of one alert, with seconds from the start."""
    one = wire.Transition(
        id=f"{name}-{severity}-{gpu}-{fired_s}",
        alert=name,
        severity=severity,
        state="firing",
        at=START + fired_s,
        started_at=START + fired_s - 5,
        labels={"node": "n", "gpu": gpu},
        facts={"eta_seconds": 600},
        causes=CAUSES,
    )
    story = [one]
    if lowered_s is not None:
        story.append(_changed(story[-1], START + lowered_s, severity="info", change="severity"))
    if ended_s is not None:
        story.append(_changed(story[-1], START + ended_s, state="resolved", change="state"))
    return story


def _changed(one: wire.Transition, at: float, **changes: object) -> wire.Transition:
    fields = {name: getattr(one, name) for name in one.__struct_fields__} | {"at": at, "causes": ()} | changes
    return wire.Transition(**fields)


def result(
    *alerts: list[wire.Transition], oom_s: float | None = None, steps: Sequence[float] = (), length_s: float = 3600.0
) -> InputResult:
    watched = Watched()
    watched.see(Line(advance=START))
    watched.see(Line(advance=START + length_s))
    watched.gpus = {"n/0": 80 * GIB, "n/1": 80 * GIB}
    if oom_s is not None:
        watched.oom_at, watched.oom_of = START + oom_s, "device"
    watched.step_times = [START + at for at in steps]
    transitions = sorted((one for story in alerts for one in story), key=lambda one: one.at)
    return judged("run", Driven(watched, transitions, []), RULES)


STEPS = [100.0 * step for step in range(1, 31)]


def test_the_lead_is_from_the_first_warning_that_stays_up() -> None:
    one = result(alert(500, 600), alert(2000), alert(2500, gpu="1"), oom_s=3000)
    assert (one.warned, one.lead_s, one.lead_steps) == (True, 1000, None)
    assert [(alert.started_at_s, alert.ended_at_s, alert.lead_s) for alert in one.alerts] == [
        (500, 600, None),
        (2000, None, 1000),
        (2500, None, 500),
    ]


def test_a_warning_that_is_raised_again_soon_counts_from_its_first_time() -> None:
    """It may be quiet for ten steps (of 100 s), or for ten minutes where no step is known."""
    assert result(alert(1000, 1500), alert(2400), oom_s=3000, steps=STEPS).lead_s == 2000
    assert result(alert(1000, 1500), alert(2600), oom_s=3000, steps=STEPS).lead_s == 400
    assert result(alert(1000, 1500), alert(2400), oom_s=3000).lead_s == 600
    assert result(alert(1000, 1500), alert(2050), oom_s=3000).lead_s == 2000
    assert result(alert(1000, 1500), alert(2050, gpu="1"), oom_s=3000).lead_s == 950


def test_a_warning_in_the_step_before_the_failure_is_in_time_and_one_in_its_own_step_is_not() -> None:
    at_the_last_line, within_the_last = (
        result(alert(2000), oom_s=2050, steps=STEPS[:20]),
        result(alert(2001), oom_s=2050, steps=STEPS[:20]),
    )
    assert (at_the_last_line.lead_steps, at_the_last_line.warned) == (1, True)
    assert (within_the_last.lead_steps, within_the_last.warned, within_the_last.lead_s) == (0, False, 49)


def test_without_steps_a_minute_is_in_time() -> None:
    assert result(alert(2000), oom_s=2060).warned is True
    assert result(alert(2000), oom_s=2059).warned is False


def test_what_ended_before_or_came_after_or_is_information_warned_of_nothing() -> None:
    for story in (
        alert(100, 200),
        alert(3001),
        alert(100, name="told", severity="info"),
        alert(100, name="gone", severity="critical"),
        alert(100, lowered_s=200),
        alert(100, name="hot"),
        alert(100, name="host"),
    ):
        one = result(story, oom_s=3000)
        assert (one.warned, one.lead_s, one.false_alarms) == (False, None, 0)


def test_a_false_alarm_is_a_warning_in_a_run_that_never_runs_out() -> None:
    one = result(
        alert(100, 200),
        alert(300),
        alert(400, name="told", severity="info"),
        alert(500, name="gone", severity="critical"),
        alert(600, lowered_s=700),
        alert(700, name="hot"),
        alert(800, name="host"),
    )
    assert (one.warned, one.false_alarms) == (None, 3)
    assert [alert.severity for alert in one.alerts[:5]] == ["warning", "warning", "info", "critical", "info"]
    assert one.alerts[4].fired_severity == "warning"
    assert [alert.warns for alert in one.alerts] == [True, True, False, False, False, False, True]


def test_an_alert_tells_its_first_cause_and_when_it_expects_the_end() -> None:
    (one,) = result(alert(100, 200)).alerts
    assert (one.cause, one.causes, one.eta_s) == ("leak", ("leak", "fragmentation"), 600)


def test_the_sums_are_rates_over_healthy_inputs_and_leads_over_warned_ones() -> None:
    day = 86400.0
    summary = summed_up(
        [
            result(alert(1, 2), alert(3, 4), length_s=day, steps=STEPS),
            result(length_s=day),
            result(alert(1000), oom_s=3000, steps=STEPS),
            result(alert(2000), oom_s=3000, steps=STEPS),
            result(oom_s=3000, steps=STEPS),
        ]
    )
    assert (summary.inputs, summary.ooms, summary.warned, summary.recall) == (5, 3, 2, 2 / 3)
    assert (summary.false_alarms, summary.days, summary.gpu_days) == (2, 2, 4)
    assert (summary.false_alarms_per_day, summary.false_alarms_per_gpu_day) == (1, 0.5)
    assert summary.false_alarms_per_1000_steps == 2 / 30 * 1000
    assert (summary.lead_s.median, summary.lead_s.p10) == (1500, 1100)
    assert (summary.lead_steps.median, summary.lead_steps.p10) == (15, 11)
    assert summary.by_rule["full/warning"].warned == 2


def test_nothing_to_take_a_figure_of_is_no_figure() -> None:
    summary = summed_up([result(oom_s=3000)])
    assert (summary.false_alarms_per_day, summary.lead_s.median, summary.recall) == (None, None, 0)
    assert (spread([]).p10, spread([7.0]).p10) == (None, 7)


def test_what_a_rule_is_said_to_predict_makes_it_a_warning_or_none() -> None:
    rule = """
rules:
  - {alert: full, predicts: %s, when: {kind: threshold, metric: gpu_used_ratio, above: 85%%}, summary: s}
"""
    watched = Watched()
    watched.see(Line(advance=START))
    for predicts, false_alarms in (("nothing", 0), ("host", 1)):
        rules = parse_rules(rule % predicts).rules
        assert judged("run", Driven(watched, alert(5), []), rules).false_alarms == false_alarms
