"""How often the forecast for GPUs without step lines is wrong, and how early it is right, beside what is usual.

    python -m bench.blocks [USED.csv[.gz]] [--capacity-gib 48] [--sensitivity]

Takes series of used device memory that stayed healthy: columns series, t_seconds, used_bytes. False: episodes on the
series as they are. Leaks: for each series, rate and seed, one that begins at a chance time is added until the card is
full. Warned: the alert stands at that moment, with its lead; ever: it stood some time before. All detectors get the
same readings, and an alert stands for KEEP_SECONDS after its condition was last met.
--sensitivity moves each limit alone, and measures on one half of the series what was chosen on the other.
"""

import csv
import gzip
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from bench._options import parser_of

from oomwatch.core.blockforecast import LIMITS, Limits, forecast
from oomwatch.core.blocks import BlockWindow

GIB = 2**30
KEEP_SECONDS = 900.0
HISTORY_SECONDS = 7 * 3600.0
LEAKS_GIB_PER_HOUR = (16, 4)
SEEDS = 5
ONSET_SHARES = (0.1, 0.6)  # of a series: early enough for a slow leak to fill the card
FALSE_PER_DAY_MAX = 0.02
MADE_UP_DAYS = 20
MADE_UP_GIB = ((30, 6), (40, 3), (45, 1), (46.5, 0.3))  # mean and spread of the peaks
LINEAR_SECONDS = 1800.0  # looked back on, and ahead
MOVED: dict[str, tuple[float, float]] = {
    "horizon_seconds": (1800.0, 3600.0),
    "near_horizon_seconds": (3600.0, 14400.0),
    "near_ratio": (0.85, 0.95),
    "peaks_tau": (0.5, 0.7),
    "floors_tau": (0.2, 0.4),
    "recent_ratio": (0.0, 0.5),
    "growth_ratio": (0.0, 0.1),
    "usual_deviations": (2.0, 4.0),
    "misfit": (0.8, 1.2),
    "near_misfit": (1.5, 3.0),
}


class Reading(NamedTuple):
    at: float
    used: float


class Trial(NamedTuple):
    """A series: as it is (no leak), or up to the moment that a leak has filled the card."""

    series: str
    readings: Sequence[Reading]
    since: float  # judged from here on
    leak: int = 0  # GiB an hour

    @property
    def end(self) -> float:
        return self.readings[-1].at


class Outcome(NamedTuple):
    trial: Trial
    episodes: list[tuple[float, float]]  # from the first time that the condition was met to the last

    @property
    def lead_seconds(self) -> float | None:
        """How long the alert had stood when the card was full; None: it did not stand."""
        stands = bool(self.episodes) and self.trial.end - self.episodes[-1][1] <= KEEP_SECONDS
        return self.trial.end - self.episodes[-1][0] if stands else None


Detector = Callable[[Sequence[Reading]], Iterator[bool]]  # for each reading, whether the condition is met


def ours(
    readings: Sequence[Reading], *, capacity: float, each: bool = False, limits: Limits = LIMITS
) -> Iterator[bool]:
    """The forecast, made when a block has closed, or at each reading."""
    window, holds = BlockWindow(), False
    for at, used in readings:
        if window.add(at, used) or each:
            running = window.open if each else None
            holds = forecast(window.closed(), capacity, running, limits) is not None
        yield holds


def static(readings: Sequence[Reading], *, bound: float) -> Iterator[bool]:
    return (used > bound for _, used in readings)


def linear(readings: Sequence[Reading], *, capacity: float) -> Iterator[bool]:
    """Prometheus' predict_linear: a straight line by least squares, read at the present and carried on."""
    first = 0
    for index, (now, _) in enumerate(readings):
        while readings[first].at < now - LINEAR_SECONDS:
            first += 1
        recent = readings[first : index + 1]
        mean_age = sum(at - now for at, _ in recent) / len(recent)
        mean_used = sum(used for _, used in recent) / len(recent)
        squares = sum((at - now - mean_age) ** 2 for at, _ in recent)
        along = sum((at - now - mean_age) * (used - mean_used) for at, used in recent)
        slope = along / squares if squares else 0.0
        yield mean_used + slope * (LINEAR_SECONDS - mean_age) > capacity


def read(path: Path) -> dict[str, list[Reading]]:
    series: dict[str, list[Reading]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for row in csv.DictReader(lines):
            series.setdefault(row["series"], []).append(Reading(float(row["t_seconds"]), float(row["used_bytes"])))
    return series


def leaking(series: dict[str, list[Reading]], leak: int, seed: int, capacity: float) -> Iterator[Trial]:
    """Those series that a leak fills before they end."""
    for name, readings in series.items():
        start, end = readings[0].at, readings[-1].at
        since = start + (end - start) * random.Random(f"{name} {leak} {seed}").uniform(*ONSET_SHARES)
        begin = (since - HISTORY_SECONDS) // 300 * 300
        grown = [Reading(at, used + max(0.0, at - since) / 3600 * leak * GIB) for at, used in readings if at >= begin]
        full = next((index for index, (at, used) in enumerate(grown) if at >= since and used >= capacity), None)
        if full is not None:
            yield Trial(name, grown[: full + 1], since, leak)


def judged(trial: Trial, detector: Detector) -> Outcome:
    """What the detector says of all readings but the last of a leak: then it is too late."""
    readings = trial.readings[:-1] if trial.leak else trial.readings
    episodes: list[tuple[float, float]] = []
    for (at, _), holds in zip(readings, detector(readings), strict=True):
        if not holds or at < trial.since:
            continue
        if episodes and at - episodes[-1][1] <= KEEP_SECONDS:
            episodes[-1] = (episodes[-1][0], at)
        else:
            episodes.append((at, at))
    return Outcome(trial, episodes)


def false_per_day(outcomes: Sequence[Outcome]) -> tuple[int, float]:
    healthy = [outcome for outcome in outcomes if not outcome.trial.leak]
    days = sum(outcome.trial.end - outcome.trial.since for outcome in healthy) / 86400
    count = sum(len(outcome.episodes) for outcome in healthy)
    return count, count / days


def recall(outcomes: Sequence[Outcome], leak: int) -> float:
    leads = [outcome.lead_seconds is not None for outcome in outcomes if outcome.trial.leak == leak]
    return sum(leads) / len(leads)


def told(outcomes: Sequence[Outcome]) -> str:
    count, per_day = false_per_day(outcomes)
    words = [f"{count:3} false, {per_day:.3f} a series-day"]
    for leak in LEAKS_GIB_PER_HOUR:
        mine = [outcome for outcome in outcomes if outcome.trial.leak == leak]
        leads = sorted(outcome.lead_seconds / 60 for outcome in mine if outcome.lead_seconds is not None)
        ever = sum(bool(outcome.episodes) for outcome in mine)
        lead = f"lead {median(leads):.0f} min, p10 {leads[len(leads) // 10]:.0f}" if leads else "no lead"
        words.append(f"{leak} GiB/h: {len(leads) / len(mine):.1%} of {len(mine)} (ever {ever / len(mine):.1%}), {lead}")
    return " | ".join(words)


def half_chosen(candidates: dict[str, list[Outcome]], names: Sequence[str]) -> tuple[str, list[Outcome]]:
    """Of the limits that are rarely enough wrong on these series the ones with the best recall, and how they do on the
    other series."""

    def on_these(outcomes: list[Outcome]) -> list[Outcome]:
        return [outcome for outcome in outcomes if outcome.trial.series in names]

    def merit(label: str) -> tuple[bool, float]:
        mine = on_these(candidates[label])
        return false_per_day(mine)[1] <= FALSE_PER_DAY_MAX, sum(recall(mine, leak) for leak in LEAKS_GIB_PER_HOUR)

    chosen = max(candidates, key=merit)
    return chosen, [outcome for outcome in candidates[chosen] if outcome.trial.series not in names]


def made_up(mean_gib: float, spread_gib: float, capacity: float) -> Trial:
    """Days of traffic without a trend: each block with a peak by chance, and a dip as deep as that of another."""
    dice, readings = random.Random(f"{mean_gib} {spread_gib}"), list[Reading]()
    for block in range(MADE_UP_DAYS * 288):
        peak = min(0.998 * capacity, dice.gauss(mean_gib, spread_gib) * GIB)
        used = [peak, peak - dice.uniform(2, 20) * GIB, peak, peak, peak]
        readings += [Reading(block * 300.0 + minute * 60, each) for minute, each in enumerate(used)]
    return Trial("made up", readings, 0.0)


def sensitivity(trials: Sequence[Trial], capacity: float) -> None:
    limits = {"as shipped": LIMITS}
    for name, values in MOVED.items():
        limits |= {f"{name} {value:g}": LIMITS._replace(**{name: value}) for value in values}
    candidates: dict[str, list[Outcome]] = {}
    for label, moved in limits.items():
        candidates[label] = [judged(trial, partial(ours, capacity=capacity, limits=moved)) for trial in trials]
        print(f"{label:23} {told(candidates[label])}", flush=True)
    names = sorted({trial.series for trial in trials})
    for half in (0, 1):
        chosen, others = half_chosen(candidates, names[half::2])
        print(f"chosen on half {half}: {chosen}; on the other half: {told(others)}")


def cost_us(series: dict[str, list[Reading]], capacity: float) -> list[float]:
    """How long a forecast takes, sorted; the shorter of two, for other programs run too."""
    times: list[float] = []
    for readings in list(series.values())[:10]:
        window = BlockWindow()
        for at, used in readings:
            if window.add(at, used):
                fives, both = window.closed(), list[float]()
                for _ in range(2):
                    began = perf_counter()
                    forecast(fives, capacity)
                    both.append(perf_counter() - began)
                times.append(min(both) * 1e6)
    return sorted(times)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("csv", type=Path, nargs="?", metavar="USED.csv")
    parser.add_argument("--capacity-gib", type=float, default=48.0)
    parser.add_argument("--sensitivity", action="store_true")
    asked = parser.parse_args()
    if asked.csv is None:
        print("not measured: give a CSV file of healthy series (series,t_seconds,used_bytes)")
        return
    series, capacity = read(asked.csv), asked.capacity_gib * GIB
    trials = [Trial(name, readings, readings[0].at) for name, readings in series.items()]
    for leak in LEAKS_GIB_PER_HOUR:
        for seed in range(SEEDS):
            trials += leaking(series, leak, seed, capacity)
    detectors: dict[str, Detector] = {
        "forecast, each 5 min": partial(ours, capacity=capacity),
        "forecast, each reading": partial(ours, capacity=capacity, each=True),
        "predict_linear": partial(linear, capacity=capacity),
        "static 90 %": partial(static, bound=0.90 * capacity),
        "static 95 %": partial(static, bound=0.95 * capacity),
    }
    for label, detector in detectors.items():
        print(f"{label:23} {told([judged(trial, detector) for trial in trials])}", flush=True)
        noise = [false_per_day([judged(made_up(mean, by, capacity), detector)])[1] for mean, by in MADE_UP_GIB]
        print("    made-up traffic, false a day: " + ", ".join(f"{each:.2f}" for each in noise), flush=True)
    times = cost_us(series, capacity)
    print(f"a forecast takes {median(times):.0f} us, p99 {times[len(times) * 99 // 100]:.0f}, worst {times[-1]:.0f}")
    if asked.sensitivity:
        sensitivity(trials, capacity)


if __name__ == "__main__":
    main()
