"""The figures of many runs, as tables and as JSON."""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from bench.warnings.score import Verdict
from bench.warnings.spec import FAMILIES, Truth

DAY_SECONDS = 86_400
FAILING_HEAD = (
    "failures", "detector", "warned", "recall", "lead steps median/p10", "lead min median/p10", "all since onset",
    "cause right", "or alike", "1st remedy", "any of 3",
)  # fmt: skip
HEALTHY_HEAD = (
    "healthy runs", "detector", "with alarms", "episodes", "per 1,000 steps", "per 1,000 GPU-steps", "per GPU-day",
    "steady", "defects", "which",
)  # fmt: skip


class Result(NamedTuple):
    """One run, with what each detector did in it."""

    scenario: str
    seed: int
    truth: Truth
    verdicts: dict[str, Verdict]
    cpu_seconds: float


def percentile(values: Sequence[float], share: float) -> float:
    """By linear interpolation; of no values it is nan."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """By detector: its figures for each family of failures, and its false alarms."""
    names = list(results[0].verdicts) if results else []
    return {name: _of_detector(name, results) for name in names}


def _of_detector(name: str, results: Sequence[Result]) -> dict[str, Any]:
    failing = [one for one in results if one.truth.fails]
    families = {family: [one for one in failing if one.truth.family == family] for family in FAMILIES[:-1]}
    return {
        "families": {family: _of_family(name, runs) for family, runs in families.items() if runs},
        "false": _of_healthy(name, [one for one in results if not one.truth.fails]),
        "defects": sum(one.verdicts[name].defects for one in results),
    }


def _of_family(name: str, runs: Sequence[Result]) -> dict[str, Any]:
    warned = [(one, found) for one in runs if (found := one.verdicts[name].warned) is not None]
    named = [(one, found) for one, found in warned if found.cause is not None]
    tried = [one.verdicts[name].tried for one, _ in warned if one.verdicts[name].tried]
    steps = [float(found.lead_steps) for _, found in warned]
    minutes = [found.lead_seconds / 60 for _, found in warned]
    return {
        "runs": len(runs),
        "warned": len(warned),
        "recall": len(warned) / len(runs),
        "lead_steps": {"median": median(steps) if steps else None, "p10": percentile(steps, 0.1) if steps else None},
        "lead_minutes": {
            "median": median(minutes) if minutes else None,
            "p10": percentile(minutes, 0.1) if minutes else None,
        },
        "whole_time_since_onset": sum(found.lead_steps >= 0.95 * found.since_onset_steps for _, found in warned),
        "cause_named": len(named),
        "cause_right": sum(found.cause == one.truth.cause for one, found in named),
        "cause_right_or_alike": sum(found.cause in (one.truth.cause, *one.truth.alike) for one, found in named),
        "remedy_offered": len(tried),
        "first_remedy_prevents": sum(one[0] for one in tried),
        "any_remedy_prevents": sum(any(one) for one in tried),
    }


def _of_healthy(name: str, runs: Sequence[Result]) -> dict[str, Any]:
    alarms = [alert for one in runs for alert in one.verdicts[name].false_alarms]
    steps = sum(one.truth.steps for one in runs)
    gpu_steps = sum(one.truth.steps * one.truth.gpus for one in runs)
    gpu_days = sum(one.truth.seconds * one.truth.gpus for one in runs) / DAY_SECONDS
    return {
        "runs": len(runs),
        "runs_with_false_alarms": sum(bool(one.verdicts[name].false_alarms) for one in runs),
        "episodes": len(alarms),
        "by_alert": dict(Counter(alarms)),
        "by_scenario": dict(Counter(one.scenario for one in runs for _ in one.verdicts[name].false_alarms)),
        "per_1000_steps": 1000 * len(alarms) / steps if steps else None,
        "per_1000_gpu_steps": 1000 * len(alarms) / gpu_steps if gpu_steps else None,
        "per_gpu_day": len(alarms) / gpu_days if gpu_days else None,
        "steady_not_counted": sum(one.verdicts[name].steady for one in runs),
    }


# ---------------------------------------------------------------- as text


def text(results: Sequence[Result]) -> str:
    if not results:
        return "no runs"
    figures = summary(results)
    parts = [_failing_table(figures), _false_table(figures), _scenario_table(results)]
    return "\n\n".join(part for part in parts if part)


def _failing_table(figures: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [FAILING_HEAD]
    for family in FAMILIES[:-1]:
        for name, of_detector in figures.items():
            one = of_detector["families"].get(family)
            if one is not None:
                rows.append(_failing_row(family, name, one))
    return table(rows)


def _failing_row(family: str, name: str, one: dict[str, Any]) -> tuple[str, ...]:
    named, offered = one["cause_named"], one["remedy_offered"]
    return (
        family,
        name,
        f"{one['warned']}/{one['runs']}",
        f"{one['recall']:.0%}",
        _pair(one["lead_steps"]),
        _pair(one["lead_minutes"]),
        f"{one['whole_time_since_onset']}/{one['warned']}",
        f"{one['cause_right']}/{named}" if named else "-",
        f"{one['cause_right_or_alike']}/{named}" if named else "-",
        f"{one['first_remedy_prevents']}/{offered}" if offered else "-",
        f"{one['any_remedy_prevents']}/{offered}" if offered else "-",
    )


def _pair(one: dict[str, float | None]) -> str:
    return "-" if one["median"] is None or one["p10"] is None else f"{one['median']:.0f} / {one['p10']:.0f}"


def _false_table(figures: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [HEALTHY_HEAD]
    for name, of_detector in figures.items():
        one = of_detector["false"]
        if one["runs"]:
            which = ", ".join(f"{alert} {count}" for alert, count in one["by_alert"].items())
            rows.append(
                (
                    str(one["runs"]),
                    name,
                    str(one["runs_with_false_alarms"]),
                    str(one["episodes"]),
                    f"{one['per_1000_steps']:.2f}",
                    f"{one['per_1000_gpu_steps']:.2f}",
                    f"{one['per_gpu_day']:.2f}",
                    str(one["steady_not_counted"]),
                    str(of_detector["defects"]),
                    which,
                )
            )
    return table(rows) if len(rows) > 1 else ""


def _scenario_table(results: Sequence[Result]) -> str:
    """What the first detector did in each scenario."""
    name = next(iter(results[0].verdicts))
    rows: list[tuple[str, ...]] = [
        ("scenario", f"runs ({name})", "warned", "lead steps", "causes named", "false alarms")
    ]
    for scenario in dict.fromkeys(sorted(one.scenario for one in results)):
        runs = [one for one in results if one.scenario == scenario]
        warned = [found for one in runs if (found := one.verdicts[name].warned)]
        causes = Counter(found.cause or "?" for found in warned)
        alarms = Counter(alert for one in runs for alert in one.verdicts[name].false_alarms)
        fails = runs[0].truth.fails
        rows.append(
            (
                scenario,
                str(len(runs)),
                f"{len(warned)}" if fails else "",
                " ".join(str(found.lead_steps) for found in warned),
                _counted(causes),
                _counted(alarms),
            )
        )
    return table(rows)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    pad: Callable[[str, int], str] = str.ljust
    return "\n".join(
        "  ".join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
