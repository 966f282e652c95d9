"""When will the peaks of a phase reach the card's end, and why is that believed?

The unit of time is the training step, the unit of data the peak of one phase of it. A peak is taken apart into what the
length of the responses explains and the rest:

    peak = base + per_token * length + per_step * step + noise

`per_token` comes from the changes between neighbouring steps, in which drift hardly shows; `per_step` from the rest.
All slopes are medians over pairs (Theil-Sen), all tests of rank (Mann-Kendall), so that an odd step moves nothing. Two
things can fill the card: the rest drifts, or the lengths do, and those not beyond what the configuration allows.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from statistics import median
from typing import Literal, NamedTuple

from oomwatch.core.climb import (
    RECORD_STEPS,
    SHORT_STEPS,
    STEPS_MIN,
    WINDOW_STEPS,
    Climb,
    climb,
    is_highest_so_far,
    is_record,
    risen,
    still_to_come,
)
from oomwatch.core.trend import rising_p, slope_interval, slopes

LENGTH_P = 0.01
RISE_RATIO_MIN = 0.01  # of the card, over the window: less is nothing to speak of
GROWTH_ETA_STEPS = 20.0  # what a model says grows for a while and levels off more often than not
FULL_RATIO = 1.02  # what is said of the longest responses is that far beyond what was seen; nearer it is no danger
# So many steps that rise one after the other, each by so much of the card: the fewer, the steeper.
STEEP = ((4, 0.015), (8, 0.005))
STEEP_STEPS = 4
UNSLOWED_RATIO = 0.6  # of the first half of such a rise, that the second half is at least
NEW_RATIO = 0.5  # of such a rise: so much of it is above all before it
STEEP_ETA_STEPS = 12.0
STEEP_NOISE_MIN = 8.0  # times what peaks usually change by from step to step
INTERVAL_Z = 1.64  # of the slope, an interval of nine in ten

Reason = Literal["drift", "length_growth"]


class Forecast(NamedTuple):
    """The card is full in `eta_steps` steps: from low to high with nine chances in ten."""

    reason: Reason
    slope_bytes: float  # a step
    level_bytes: float  # the height of a high peak now
    eta_steps: float
    eta_low_steps: float
    eta_high_steps: float
    p: float  # how probable it is that there is no trend
    steps: int  # that it rests on


class Lengths(NamedTuple):
    """What drives the peaks, step by step, and how far it can go."""

    tokens: Sequence[float]
    cap_tokens: float | None


def forecast(
    peaks: Sequence[float], capacity: float, drivers: Sequence[Lengths] = (), *, steep: bool = True
) -> Forecast | None:
    """The earlier of what drift and what growing lengths lead to; None where neither does.

    peaks: bytes, oldest first. drivers: what may explain them, each as long; the one that does best is used.
    steep: whether a rise so steep that there is no time for statistics is believed.
    """
    recent = peaks[-WINDOW_STEPS:]
    if len(recent) < STEEP_STEPS or not _could_reach(recent, capacity):
        return None
    driver = _driver(recent, drivers)
    rest = (
        [peak - driver.per_token * one for peak, one in zip(recent, driver.tokens, strict=True)] if driver else recent
    )
    drift = _drift(recent, rest, capacity, steep=steep and not _rise_with(drivers))
    if drift and drift.eta_steps > GROWTH_ETA_STEPS and any(climb(one.tokens[-WINDOW_STEPS:]) for one in drivers):
        drift = None  # lengths that climb explain the more of the peaks, the less surely it is known how much
    growth = _growth(recent, driver, capacity) if driver else None
    return min((one for one in (drift, growth) if one), key=lambda one: one.eta_steps, default=None)


class _Driver(NamedTuple):
    tokens: Sequence[float]
    cap_tokens: float | None
    per_token: float  # bytes


def _driver(peaks: Sequence[float], drivers: Sequence[Lengths]) -> _Driver | None:
    """The lengths that go together with the peaks most surely."""
    tried = [(_association(peaks, one.tokens[-WINDOW_STEPS:]), one) for one in drivers]
    p, best = min(tried, key=lambda one: one[0], default=(1.0, None))
    if best is None or p > LENGTH_P:
        return None
    tokens = best.tokens[-WINDOW_STEPS:]
    per_token = bytes_per_token(peaks, tokens)
    return _Driver(tokens, best.cap_tokens, per_token) if per_token > 0 else None


def _association(peaks: Sequence[float], tokens: Sequence[float]) -> float:
    """How probable it is that peaks and lengths only seem to change together from step to step (Kendall)."""
    changes = sorted(_changes(peaks, tokens), key=lambda one: one[1])
    return rising_p([change for change, _ in changes]) if len(changes) >= STEPS_MIN else 1.0


def bytes_per_token(peaks: Sequence[float], tokens: Sequence[float]) -> float:
    """How much a longer response adds to the peak.

    From the changes between neighbouring steps, in which drift hardly shows: the median of their ratios, in which a
    larger change counts for more.
    """
    return _weighted_median([(change / by, abs(by)) for change, by in _changes(peaks, tokens)])


def _changes(peaks: Sequence[float], tokens: Sequence[float]) -> list[tuple[float, float]]:
    told = pairwise(zip(peaks, tokens, strict=True))
    return [(after - before, more - less) for (before, less), (after, more) in told if more != less]


def _rise_with(drivers: Sequence[Lengths]) -> bool:
    """Whether any of the lengths rose in each of the last steps, as peaks do that rise steeply."""
    last = [one.tokens[-STEEP_STEPS:] for one in drivers]
    return any(all(before < after for before, after in pairwise(tokens)) for tokens in last)


def _drift(peaks: Sequence[float], rest: Sequence[float], capacity: float, *, steep: bool) -> Forecast | None:
    """What is left of the peaks when lengths are taken out rises by itself, and lifts the peaks with it."""
    soon = _steep(peaks, rest, capacity) if steep else None
    found = None if soon else climb(rest)
    if found is None or not is_record(rest) or is_highest_so_far(rest) or risen(rest) < RISE_RATIO_MIN * capacity:
        return soon
    if max(peaks[-SHORT_STEPS:]) <= max(peaks[:-SHORT_STEPS], default=0.0):
        return None
    level = _high_now(peaks[-SHORT_STEPS:], found.per_step)
    return _reaching("drift", found, level, capacity) if level + still_to_come(rest, found) >= capacity else None


def _growth(peaks: Sequence[float], driver: _Driver, capacity: float) -> Forecast | None:
    """Responses become longer, and the peaks with them: as far as the configuration lets them."""
    explained = [driver.per_token * one for one in driver.tokens]
    found = climb(explained)
    level = max(peaks[-RECORD_STEPS:])
    if found is None or level + still_to_come(explained, found) < capacity:
        return None
    longest = max(driver.tokens[-SHORT_STEPS:])
    if driver.cap_tokens is not None:
        could_grow = driver.per_token * max(0.0, driver.cap_tokens - longest)
        if level + could_grow < FULL_RATIO * capacity:
            return None
    one = _reaching("length_growth", found, level, capacity)
    return one if one and one.eta_steps <= GROWTH_ETA_STEPS else None


def _steep(peaks: Sequence[float], rest: Sequence[float], capacity: float) -> Forecast | None:
    """A rise so steep that there is no time for statistics: every one of the last steps, by much, to a record."""
    last = next((rest[-count:] for count, ratio in STEEP if _is_steep(rest[-count:], count, ratio * capacity)), None)
    if last is None or last[-1] < max(rest):
        return None
    rises = [after - before for before, after in pairwise(last)]
    if last[-1] - max(rest[: 1 - len(last)]) < NEW_RATIO * sum(rises):
        return None
    earlier = [abs(after - before) for before, after in pairwise(rest[: 1 - len(last)])]
    if earlier and sum(rises) < STEEP_NOISE_MIN * median(earlier):
        return None
    found = _reaching("drift", Climb(last, median(rises), 0.0, len(last)), max(peaks[-len(last) :]), capacity)
    return found if found and found.eta_steps <= STEEP_ETA_STEPS else None


def _is_steep(last: Sequence[float], count: int, at_least: float) -> bool:
    """Whether each of so many values is so much above the one before, and the later ones no less than the earlier."""
    rises = [after - before for before, after in pairwise(last)]
    half = len(rises) // 2
    return (
        len(last) == count
        and min(rises) >= at_least
        and (count == STEEP_STEPS or sum(rises[-half:]) >= UNSLOWED_RATIO * sum(rises[:half]))
    )


def _reaching(reason: Reason, found: Climb, level: float, capacity: float) -> Forecast | None:
    if found.per_step <= 0:
        return None
    low, high = slope_interval(slopes(found.values), len(found.values), INTERVAL_Z)
    room = max(0.0, capacity - level)
    return Forecast(
        reason=reason,
        slope_bytes=found.per_step,
        level_bytes=level,
        eta_steps=room / found.per_step,
        eta_low_steps=room / max(high, found.per_step),
        eta_high_steps=room / low if low > 0 else inf,
        p=found.p,
        steps=found.steps,
    )


def _could_reach(peaks: Sequence[float], capacity: float) -> bool:
    """Cheaply: what rises is higher lately than before."""
    third = max(1, len(peaks) // 3)
    return max(peaks[-third:]) > max(peaks[:third]) or capacity - max(peaks) < 0


def _high_now(values: Sequence[float], per_step: float) -> float:
    """The line's height at the last step, and above it as far as a high one of these peaks was."""
    now = len(values) - 1
    level = [value + per_step * (now - index) for index, value in enumerate(values)]
    return _high(level)


def _high(values: Sequence[float]) -> float:
    """The second highest of a dozen: one odd step is no level."""
    ranked = sorted(values)
    return ranked[-2] if len(ranked) >= SHORT_STEPS else ranked[-1]


def _weighted_median(pairs: list[tuple[float, float]]) -> float:
    half, reached = sum(weight for _, weight in pairs) / 2, 0.0
    for value, weight in sorted(pairs):
        reached += weight
        if reached >= half:
            return value
    return 0.0
