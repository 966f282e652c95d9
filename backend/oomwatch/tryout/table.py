"""PURE: the result of trying a rule file, for a terminal."""

from collections.abc import Sequence
from datetime import datetime, timezone

from oomwatch.backtest.score import subject_of
from oomwatch.tryout.result import Firing, RuleTried, Told, Tried, Tryout
from oomwatch.units import counted, format_duration

COLUMNS = ("rule", "", "tried", "in force", "new", "gone", "open for", "first", "last", "before a failure")
ALERTS_SHOWN = 10
SUBJECTS_SHOWN = 3


def table(found: Tryout) -> list[str]:
    """The lines."""
    rows = [row for row in found.rules if row.tried.count or (row.in_force and row.in_force.count) or _differs(row)]
    lines = [*_head(found.tried), _verdict(found), ""]
    lines += _aligned([COLUMNS, *map(_row, rows)]) if rows else ["No rule fires, neither tried nor in force."]
    if found.same:
        lines.append(f"{counted(len(found.same), 'rule')} the same in both files" + _unjudged(found))
    if found.left_out:
        lines.append(f"not tried, since nobody's silence is recorded: {', '.join(found.left_out)}")
    lines += [f"defect: {one}" for one in found.defects]
    return [*lines, *_alerts("new", found.new), *_alerts("gone", found.gone)]


def _differs(row: RuleTried) -> bool:
    return row.change not in (None, "same")


def _head(tried: Tried) -> list[str]:
    what = f"{counted(tried.nodes, 'node')}, {counted(tried.gpus, 'GPU')}, {counted(tried.readings, 'reading')}"
    span = f"{_moment(tried.start_at)} to {_moment(tried.end_at)}: {what}, in {tried.took_seconds:.0f} s"
    if tried.complete:
        return [span]
    wanted = (tried.wanted_end_at - tried.wanted_start_at) / 3600
    got = (tried.end_at - tried.start_at) / 3600
    part = f"ONLY {got:.1f} OF {wanted:.1f} HOURS fitted into the budget"
    return [span, f"{part}; give it more (--budget), or choose --run or --node"]


def _verdict(found: Tryout) -> str:
    told = f"would have fired {counted(found.count, 'time')}"
    if found.in_force_count is None:
        return told
    return f"{told}; the rules in force: {counted(found.in_force_count, 'time')}"


def _unjudged(found: Tryout) -> str:
    return "" if any(row.change == "same" for row in found.rules) else ", and not judged (--all does)"


def _row(row: RuleTried) -> tuple[str, ...]:
    tried = row.tried
    off = "" if row.enabled or row.change == "gone" else " (off)"
    return (
        f"{row.alert} ({row.severity}){off}",
        row.change or "",
        str(tried.count) + _where(tried),
        "-" if row.in_force is None else str(row.in_force.count),
        "-" if row.new is None else str(row.new),
        "-" if row.gone is None else str(row.gone),
        format_duration(round(tried.open_seconds)) if tried.count else "-",
        _moment(tried.first_at),
        _moment(tried.last_at),
        f"{tried.happened}" if tried.happened or tried.false or tried.avoided else "-",
    )


def _where(told: Told) -> str:
    if not told.subjects:
        return ""
    shown = ", ".join(told.subjects[:SUBJECTS_SHOWN])
    return f" ({shown}{', ...' if told.subjects_count > SUBJECTS_SHOWN else ''})"


def _alerts(kind: str, alerts: Sequence[Firing]) -> list[str]:
    if not alerts:
        return []
    rest = f"; the latest {ALERTS_SHOWN}" if len(alerts) > ALERTS_SHOWN else ""
    return ["", f"{kind}{rest}:", *(f"  {_alert(one)}" for one in alerts[:ALERTS_SHOWN])]


def _alert(one: Firing) -> str:
    lasted = "still open" if one.ended_at is None else f"for {format_duration(round(one.ended_at - one.fired_at))}"
    verdict = f", {one.verdict}" if one.verdict else ""
    run = f", run {one.labels['run']}" if "run" in one.labels and "node" in one.labels else ""
    return f"{_moment(one.fired_at)}  {one.alert} ({one.severity})  {subject_of(one.labels)}{run}  {lasted}{verdict}"


def _moment(at: float | None) -> str:
    return "-" if at is None else datetime.fromtimestamp(at, timezone.utc).strftime("%m-%d %H:%M:%SZ")


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
