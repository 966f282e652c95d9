"""Recorded device memory of healthy programs, and the same with a leak put in: false alarms, recall and lead.

The recordings are given by path and stay out of this project. A leak begins at a seeded point of each series and goes
on until the card is full; a series that has no room to fill before it ends is not counted.
"""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

from bench.warnings.detectors import Detector, Episode, detectors, select
from bench.warnings.report import DAY_SECONDS, table
from bench.warnings.shapes import GIB

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.trace import Line
from oomwatch.units import parse_quantity

LEAKS_GIB_AN_HOUR = (16.0, 4.0)
LEAK_BEGINS = (0.2, 0.6)  # of the series
AHEAD_SECONDS = 60.0  # of the crossing, at least


class Series(NamedTuple):
    name: str
    points: tuple[tuple[float, int], ...]  # seconds, bytes

    @property
    def seconds(self) -> float:
        return self.points[-1][0] - self.points[0][0]


class Measured(NamedTuple):
    text: str
    figures: dict[str, Any]


def read_series(path: Path) -> list[Series]:
    """All series of a file with the columns series, t_seconds, used_bytes. Raises ValueError, OSError."""
    found: dict[str, list[tuple[float, int]]] = {}
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    for number, row in enumerate(csv.DictReader(StringIO(text)), start=2):
        name, point = _point(row, f"{path}:{number}")
        found.setdefault(name, []).append(point)
    return [Series(name, tuple(sorted(points))) for name, points in found.items() if len(points) > 1]


def _point(row: Mapping[str, str], place: str) -> tuple[str, tuple[float, int]]:
    try:
        return row["series"], (float(row["t_seconds"]), int(float(row["used_bytes"])))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: series,t_seconds,used_bytes are needed: {error}") from error


def leaking(series: Series, gib_an_hour: float, capacity: int) -> tuple[Series, float, float] | None:
    """The series with a leak, when that begins, and when the card is full; None where it never is."""
    dice = Random(f"{series.name}/{gib_an_hour}")
    first = series.points[0][0]
    began = first + series.seconds * dice.uniform(*LEAK_BEGINS)
    points: list[tuple[float, int]] = []
    for at, used in series.points:
        grown = used + int(max(0.0, at - began) / 3600 * gib_an_hour * GIB)
        points.append((at, min(grown, capacity)))
        if grown >= capacity:
            return Series(series.name, tuple(points)), began, at
    return None


def lines_of(series: Series, capacity: int) -> Iterator[Line]:
    """As samples of a node with one card and nothing else."""
    node = series.name
    facts = wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid=f"GPU-{node}", name="recorded", total_bytes=capacity),))
    first = series.points[0][0]
    hello = wire.Hello(
        protocol=wire.PROTOCOL_VERSION,
        agent_version="0",
        node=node,
        session="recorded",
        sent_at=first,
        interval_seconds=60.0,
        facts=facts,
    )
    yield Line(now=first, node=node, message=hello)
    for seq, (at, used) in enumerate(series.points, start=1):
        sample = wire.Sample(seq=seq, at=at, gpus=(wire.GpuSample(gpu="0", used_bytes=used),))
        yield Line(now=at, node=node, message=sample)
        yield Line(advance=at)


def measure_series(path: Path, capacity: str, wanted: Sequence[str], rules: RuleSet | None) -> Measured:
    """Show every series to the detectors, as it is and with leaks."""
    card = int(parse_quantity(capacity))
    every = read_series(path)
    chosen = select(detectors(rules), wanted)
    figures = {name: _measured(name, detector, every, card) for name, detector in chosen.items()}
    days = sum(one.seconds for one in every) / DAY_SECONDS
    head = f"{len(every)} healthy series, {days:.1f} series-days, cards of {capacity}"
    return Measured(f"{head}\n\n{_text(figures)}", {"series": len(every), "days": days, "detectors": figures})


def _measured(name: str, detector: Detector, every: Sequence[Series], capacity: int) -> dict[str, Any]:
    days = sum(one.seconds for one in every) / DAY_SECONDS
    false = sum(len(_counted(detector(list(lines_of(one, capacity))).episodes)) for one in every)
    leaks = {f"{rate:g} GiB/h": _leaks(detector, every, rate, capacity) for rate in LEAKS_GIB_AN_HOUR}
    return {"detector": name, "false": false, "false_per_series_day": false / days, "leaks": leaks}


def _counted(episodes: Sequence[Episode]) -> list[Episode]:
    """Silence is the recording's own; what was lowered to information warns nobody."""
    return [one for one in episodes if not one.steady and one.alert != "agent_silent"]


def _leaks(detector: Detector, every: Sequence[Series], rate: float, capacity: int) -> dict[str, Any]:
    leads: list[float] = []
    runs = 0
    for series in every:
        leaked = leaking(series, rate, capacity)
        if leaked is None:
            continue
        runs += 1
        told, began, full = leaked
        episodes = detector(list(lines_of(told, capacity))).episodes
        if (start := _warned_at(episodes, began, full)) is not None:
            leads.append((full - start) / 60)
    return {
        "runs": runs,
        "warned": len(leads),
        "recall": len(leads) / runs if runs else None,
        "lead_minutes_median": median(leads) if leads else None,
    }


def _warned_at(episodes: Sequence[Episode], began: float, full: float) -> float | None:
    """When the leak was first warned of: by an alert that began in it, or that was open all along to its end."""
    of_leak = [one for one in _counted(episodes) if began <= one.start or one.is_open_at(full - 1)]
    starts = [max(began, one.start) for one in of_leak if one.start <= full - AHEAD_SECONDS]
    return min(starts, default=None)


def _text(figures: Mapping[str, dict[str, Any]]) -> str:
    rows = [("detector", "false", "a series-day", *(f"{rate:g} GiB/h: warned, lead min" for rate in LEAKS_GIB_AN_HOUR))]
    for name, one in figures.items():
        leaks = [
            f"{leak['warned']}/{leak['runs']}, {leak['lead_minutes_median'] or float('nan'):.0f}"
            for leak in one["leaks"].values()
        ]
        rows.append((name, str(one["false"]), f"{one['false_per_series_day']:.3f}", *leaks))
    return table(rows)
