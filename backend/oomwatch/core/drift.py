"""Is a figure of the steps drifting up, and does it still?

Noise with a memory looks like drift for a while, and what starts up rises and levels off. So the trend must be
significant for noise that remembers as much as this does, must have left all before it behind, and must not slow down.
"""

from collections.abc import Sequence
from statistics import median

from oomwatch.core import trend

LONG_STEPS, SHORT_STEPS = trend.LONG, trend.SHORT
SIGNIFICANT_DEVIATIONS = 3.1  # one-sided p = .001: successive steps share most of their window
STILL_RATIO = 0.5  # of the pace of the whole window, and of the steps before the last ones
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
    deviation = trend.score_deviation(len(window)) * trend.widened_by_memory(window, slope)
    return trend.score(window) > SIGNIFICANT_DEVIATIONS * deviation
