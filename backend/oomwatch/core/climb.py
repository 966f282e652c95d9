"""Does a series of peaks climb, and will it go on? One value a step (or a block of time), oldest first.

Noise looks like a climb now and then, what is loaded climbs once, what warms up climbs and levels off, and the highest
value so far of any noise never falls. So two windows must agree, the last values must leave all
before them behind, and a climb that surely slows down is followed to where it ends.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import exp, factorial, inf
from statistics import median
from typing import NamedTuple

from oomwatch.core import trend

LONG_STEPS, SHORT_STEPS, STEPS_MIN = trend.LONG, trend.SHORT, 6
WINDOW_STEPS = 60  # for what is too slow for that
# How often these are wrong, and how early they are right: bench/warnings, docs/reference/performance.md.
LONG_P, SHORT_P = 0.003, 0.02
SATURATING_RATIO = 0.4  # a rise that has slowed down to less than this share of what it was levels off
SURE_P, STEADY_RATIO = 1e-4, 0.6
LEAP_RATIO = 8.0  # times the usual change: a normal noise exceeds it once in ten million
RECORD_STEPS = 4  # among so many last values there is one higher than all before
HALF_STEPS_MIN, BENT_P = 4, 0.05


class Climb(NamedTuple):
    """`values` are those of the window that tells the slope; `steps` is the length of the one that makes it sure."""

    values: Sequence[float]
    per_step: float
    p: float  # how probable it is that there is none
    steps: int


def climb(values: Sequence[float]) -> Climb | None:
    """A rise that two windows agree on; where the usual two are too short for the noise, two twice as long."""
    found = _climb(values)
    rest = _without_leap(values) if found else values
    return found if rest is values or _climb(rest) else None


def _climb(values: Sequence[float]) -> Climb | None:
    if len(values) < STEPS_MIN:
        return None
    found = _agreed(values[-LONG_STEPS:], values[-SHORT_STEPS:])
    if found is None and len(values) > LONG_STEPS:
        found = _agreed(values, values[-2 * SHORT_STEPS :])
    return found


def _without_leap(values: Sequence[float]) -> Sequence[float]:
    """The values as they were had the largest change from one to the next been none, where it stands out.

    What is loaded once, or a phase that is told together with its neighbour now and then, leaps and does not climb.
    """
    changes = [later - earlier for earlier, later in pairwise(values)]
    if not changes:
        return values
    leap = max(changes)
    if leap <= LEAP_RATIO * median(map(abs, changes)):
        return values
    place = changes.index(leap) + 1
    return [*values[:place], *(value - leap for value in values[place:])]


def _agreed(long: Sequence[float], short: Sequence[float]) -> Climb | None:
    """Either both are significant, and the short one says how fast it is now; or the long one is beyond doubt, and the
    short one too noisy to tell, but no slower."""
    if trend.rising_p(long) > LONG_P:
        return None
    long_p = trend.remembering_p(long)
    if long_p > LONG_P:
        return None
    fast, usual = trend.slope(short), trend.slope(long)
    if trend.rising_p(short) <= SHORT_P and fast >= SATURATING_RATIO * usual:
        return Climb(short, fast, long_p, len(long))
    if long_p <= SURE_P and fast >= STEADY_RATIO * usual:
        return Climb(long, usual, long_p, len(long))
    return None


def still_to_come(values: Sequence[float], found: Climb) -> float:
    """How far a rise that has surely slowed down may go on yet; one that has not goes on for ever.

    It has where a straight line is first overtaken and then not followed. If it slows down by the same share in each
    half of the window, what is to come is a geometric series.
    """
    window = values[-found.steps :]
    per_step, half = trend.slope(window), len(window) // 2
    bent = [value - per_step * index for index, value in enumerate(window)]
    if half < HALF_STEPS_MIN or max(trend.rising_p(bent[:half]), trend.rising_p(bent[half:][::-1])) > BENT_P:
        return inf
    before, lately = trend.slope(window[:half]), trend.slope(window[half:])
    share = lately / before if before > 0 else 1.0
    return lately * half * share / (1 - share) if 0 < share < STEADY_RATIO else inf if share >= STEADY_RATIO else 0.0


def is_highest_so_far(values: Sequence[float]) -> bool:
    """Whether a line that never falls is no more than the highest value so far of a noise without trend.

    The n-th value of such a noise is a record once in n, so the number of records among the last is nearly Poisson.
    """
    if any(after < before for before, after in pairwise(values)):
        return False
    last = values[-SHORT_STEPS:]
    records = sum(after > before for before, after in pairwise(last))
    expected = sum(1 / n for n in range(len(values) - len(last) + 2, len(values) + 1))
    return _poisson_tail(records, expected) > LONG_P


def _poisson_tail(count: int, expected: float) -> float:
    """How probable so many or more are."""
    return 1.0 - sum(exp(-expected) * expected**k / factorial(k) for k in range(count))


def is_record(values: Sequence[float]) -> bool:
    return max(values[-RECORD_STEPS:]) > max(values[:-RECORD_STEPS])


def risen(values: Sequence[float]) -> float:
    """From where the window began to where it is now."""
    third = max(1, len(values) // 3)
    return median(values[-RECORD_STEPS:]) - median(values[:third])
