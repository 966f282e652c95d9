"""How far a peak may be from what is expected of it."""

from collections.abc import Iterable
from math import sqrt

from oomwatch.plan.memory.part import Part, total

LEAST_RATIO, MOST_RATIO = 0.05, 0.20
# Of the spreads of single parts, which were judged one by one, so much is left in their sum: they err together.
_TOGETHER = 1.5


def half_width_ratio(parts: Iterable[Part]) -> float:
    """Half of the interval as a share of what is expected; never less than 5 % nor more than 20 %."""
    known = tuple(parts)
    expected = total(known)
    if expected <= 0:
        return LEAST_RATIO
    spread = _TOGETHER * sqrt(sum((part.spread * part.bytes) ** 2 for part in known)) / expected
    return min(MOST_RATIO, max(LEAST_RATIO, spread))
