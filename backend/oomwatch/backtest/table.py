"""The result of a backtest as a table on a terminal."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from oomwatch.backtest.result import AlertResult, InputResult, Result, Summary
from oomwatch.units import counted, format_duration

NAME_CHARS_MAX = 44


def table_of(result: Result) -> str:
    """One row an alert, inputs in which nothing fired together, and the sums below."""
    head = ("input", "fired at", "ended at", "severity", "alert", "subject", "lead", "cause")
    rows = [head, *_rows(result.inputs)]
    told = [*_advised(result.inputs), *_notes(result.inputs)]
    return _shown([*_aligned(rows), "", *told, *_sums(["", "all inputs"], [result.summary])])


def side_by_side(names: Sequence[str], results: Sequence[Result]) -> str:
    """What each rule file would have said of each input, and the sums beside each other."""
    rows: list[tuple[str, ...]] = [("input", "oom at", *names)]
    for inputs in zip(*(result.inputs for result in results), strict=True):
        first = inputs[0]
        rows.append((_cut(first.name), _clock(first.oom_at_s), *(_in_short(one) for one in inputs)))
    sums = _sums(["", *names], [result.summary for result in results])
    return _shown([*_aligned(rows), "", *_notes(results[0].inputs), *sums])


def _shown(lines: Sequence[str]) -> str:
    """What names hold must not command the terminal, nor turn its text around."""
    return "\n".join("".join(one if one.isprintable() else "\ufffd" for one in line) for line in lines)


def _rows(inputs: Sequence[InputResult]) -> Iterator[tuple[str, ...]]:
    for quiet, group in groupby(inputs, key=lambda one: not one.alerts and one.oom_at_s is None):
        of_group = list(group)
        if quiet and len(of_group) > 1:
            yield (f"{len(of_group)} inputs: {_cut(of_group[0].name, 16)} ...", "nothing fired", *[""] * 6)
            continue
        for one in of_group:
            yield from _rows_of(one)


def _rows_of(one: InputResult) -> Iterator[tuple[str, ...]]:
    length = f"{_clock(one.duration_s)} long" + (f", {counted(one.steps, 'step')}" if one.steps else "")
    oom = f"out of memory at {_clock(one.oom_at_s)}" if one.oom_at_s is not None else ""
    yield (_cut(one.name), length, oom, *[""] * 5) if one.alerts else (_cut(one.name), "nothing fired", oom, *[""] * 5)
    for alert in one.alerts:
        yield _row(alert, one)


def _row(alert: AlertResult, one: InputResult) -> tuple[str, ...]:
    lowered = f"{alert.severity} (was {alert.fired_severity})"
    severity = alert.severity if alert.severity == alert.fired_severity else lowered
    return (
        "",
        _clock(alert.started_at_s),
        _clock(alert.ended_at_s) if alert.ended_at_s is not None else "open",
        severity,
        alert.alert,
        _cut(alert.subject, 28),
        _worth(alert, one),
        alert.cause or "",
    )


def _worth(alert: AlertResult, one: InputResult) -> str:
    """What the alert was good for."""
    if alert.lead_s is not None:
        return lead_of(alert.lead_s, alert.lead_steps)
    if not alert.warns:
        return "foretells nothing" if alert.severity != "info" else "information"
    if one.oom_at_s is None:
        return "false"
    if alert.started_at_s >= one.oom_at_s:
        return "came after"
    ended_before = alert.ended_at_s is not None and alert.ended_at_s < one.oom_at_s
    return "ended before" if ended_before else "of other memory"


ADVISED_MAX = 5  # inputs; of more the table is what is looked at, and --json has it all


def _advised(inputs: Sequence[InputResult]) -> Iterator[str]:
    """Of each input that failed: what was said first of what foretold it, and what to change."""
    failed = [one for one in inputs if one.oom_at_s is not None]
    for one in failed if len(failed) <= ADVISED_MAX else ():
        first = next((alert for alert in one.alerts if alert.lead_s is not None), None)
        if first is None or not first.overrides:
            continue
        yield f"{_cut(one.name)}, at {_clock(first.started_at_s)}: {first.summary}"
        yield from (f"    {line}" for line in first.overrides)
        yield ""


def lead_of(lead_s: float | None, lead_steps: int | None) -> str:
    """ "12m, 4 steps" before the memory ran out."""
    if lead_s is None:
        return "none"
    steps = "" if lead_steps is None else f", {counted(lead_steps, 'step')}"
    return _clock(lead_s) + steps


def _in_short(one: InputResult) -> str:
    if one.oom_at_s is not None:
        return f"lead {lead_of(one.lead_s, one.lead_steps)}" if one.warned else "missed"
    return f"{one.false_alarms} false" if one.false_alarms else "quiet"


# ---------------------------------------------------------------- sums


def _sums(head: list[str], summaries: Sequence[Summary]) -> list[str]:
    rows: list[tuple[str, ...]] = [tuple(head)]
    rows += [(label, *(figure(summary) for summary in summaries)) for label, figure in _FIGURES.items()]
    names = dict.fromkeys(name for summary in summaries for name in summary.by_rule)
    rows += [(f"  {name}", *(_of_rule(summary, name) for summary in summaries)) for name in names]
    return list(_aligned(rows))


_FIGURES: dict[str, Callable[[Summary], str]] = {
    "inputs (out of memory)": lambda one: f"{one.inputs} ({one.ooms})",
    "warned in time": lambda one: f"{one.warned} of {one.ooms}" + _percent(one.recall) if one.ooms else "-",
    "lead, median (10th percentile)": lambda one: f"{_clock(one.lead_s.median)} ({_clock(one.lead_s.p10)})",
    "lead in steps": lambda one: f"{_number(one.lead_steps.median)} ({_number(one.lead_steps.p10)})",
    "false alarms": lambda one: str(one.false_alarms),
    "  a day": lambda one: _number(one.false_alarms_per_day),
    "  a GPU-day": lambda one: _number(one.false_alarms_per_gpu_day),
    "  per 1,000 steps": lambda one: _number(one.false_alarms_per_1000_steps),
    "days without failure": lambda one: _number(one.days),
}


def _of_rule(summary: Summary, name: str) -> str:
    score = summary.by_rule.get(name)
    if score is None:
        return "-"
    return f"{score.alerts} fired, {score.false_alarms} false, {score.warned} in time"


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({share:.0%})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _notes(inputs: Sequence[InputResult]) -> list[str]:
    """What could not be judged, once for all inputs of which it is so."""
    of: dict[str, list[str]] = {}
    for one in inputs:
        for note in one.notes:
            of.setdefault(note, []).append(_cut(one.name))
    told = [f"{names[0] if len(names) == 1 else f'{len(names)} inputs'}: {note}" for note, names in of.items()]
    return told + ([""] if told else [])


# ---------------------------------------------------------------- words


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return format_duration(float(round(seconds)))


def _cut(text: str, most: int = NAME_CHARS_MAX) -> str:
    """The end of a long name tells more than its beginning."""
    return text if len(text) <= most else "..." + text[3 - most :]


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as they need; what stands alone in its row may run on."""
    widths = [
        max(len(row[place]) for row in rows if any(row[place + 1 :]) or place == len(rows[0]) - 1 or not place)
        if any(any(row[place + 1 :]) or not place for row in rows)
        else 0
        for place in range(len(rows[0]))
    ]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
