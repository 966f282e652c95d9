"""Is a figure of the steps drifting up, and does it still?

Noise with a memory looks like drift for a while, and what starts up rises and levels off. So the trend must be
significant for noise that remembers as much as this does, must have left all before it behind, and must not slow down.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import median

from oomwatch.core import trend

LONG_STEPS, SHORT_STEPS = 30, 12
SIGNIFICANT_DEVIATIONS = 3.1  # one-sided p = .001: successive steps share most of their window
STILL_RATIO = 0.5  # of the pace of the whole window, and of the steps before the last ones
MEMORY_MAX = 0.9
EXACT_RATIO = 1e-9
LAST_STEPS = 6  # whose median is what the figure is now


def drift(values: Sequence[float], at_least: float) -> float | None:
    """Rise from one step to the next over the last thirty values, oldest first, in their unit.

    None where it is less than `at_least` in all (Theil-Sen), where it is not significant (Mann-Kendall, corrected for
    memory), where it is no more than a return to what was before the window, and where it is over: the last twelve rise
    at less than half the pace.
    """
    window, before = values[-LONG_STEPS:], values[:-LONG_STEPS]
    if len(window) < LONG_STEPS or not _may_rise(window, at_least):
        return None
    if before and median(window[-LAST_STEPS:]) <= max(before):
        return None
    slope = trend.slope(window)
    if slope * (len(window) - 1) < at_least or not _is_significant(window, slope):
        return None
    lately, until_then = trend.slope(window[-SHORT_STEPS:]), trend.slope(window[:-SHORT_STEPS])
    return min(slope, lately) if lately >= STILL_RATIO * max(slope, until_then) else None


def _may_rise(window: Sequence[float], at_least: float) -> bool:
    """A first look that costs little and is enough for nearly every step: the last third against the first."""
    third = len(window) // 3
    return sum(window[-third:]) - sum(window[:third]) >= third * at_least / 2


def _is_significant(window: Sequence[float], slope: float) -> bool:
    memory = _memory([value - slope * index for index, value in enumerate(window)])
    deviation = trend.score_deviation(len(window)) * sqrt((1 + memory) / (1 - memory))
    return trend.score(window) > SIGNIFICANT_DEVIATIONS * deviation


def _memory(values: Sequence[float]) -> float:
    """How much of a value's noise is left in the next one: autocorrelation at lag 1, without its bias in short series.

    (F. H. C. Marriott and J. A. Pope, Biometrika 41, 1954.)
    """
    middle = sum(values) / len(values)
    off = [value - middle for value in values]
    total = sum(one * one for one in off)
    if total <= EXACT_RATIO**2 * sum(one * one for one in values):
        return 0.0  # a straight line: what is left is rounding
    found = sum(one * following for one, following in pairwise(off)) / total
    return min(MEMORY_MAX, max(0.0, found + (1 + 4 * found) / len(values)))


def scatter(values: Sequence[float]) -> float:
    """Standard deviation of normal noise, from the median deviation: odd values count little."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)
