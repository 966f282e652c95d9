"""By how much a short series rose, and how fast: what a cause is told by once an alert has fired.

The alert has been raised on stricter grounds; this only says which part of the memory it was.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

from oomwatch.core import trend

TREND_MIN = 5  # values; fewer can only rise all the way
TREND_P = 0.02
RECENT = 8  # what began lately is no trend of the whole window
JUMP_RANGES = 3.0  # times the range of all values before


def known(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def rise(values: Sequence[float]) -> float:
    """By how much a series rose; 0 where that could be chance.

    Of three or four values only a rise all the way counts, or a leap: what kills within the first steps shows no trend.
    """
    if len(values) < 3:  # noqa: PLR2004
        return 0.0
    if len(values) < TREND_MIN:
        climbs = all(later > before for before, later in pairwise(values))
        return values[-1] - values[0] if climbs else _leap(values)
    return max(_trend(tuple(values)), _trend(tuple(values[-RECENT:])), _jump(values), _shift(values))


def parted(values: Sequence[float], last: int) -> float:
    """By how much a series rose where something else did: the last so many values are above all before them."""
    before, after = values[: len(values) - last], values[len(values) - last :]
    return values[-1] - max(before) if before and after and min(after) > max(before) else 0.0


def pace(values: Sequence[float]) -> float:
    """By how much a series rises from one value to the next, lately if that is more; 0 where it does not rise."""
    if rise(values) == 0:
        return 0.0
    recent = tuple(values[-RECENT:])
    return max(_trend(tuple(values)) / (len(values) - 1), _trend(recent) / (len(recent) - 1), _climb(values))


def _climb(values: Sequence[float]) -> float:
    """Rise from one value to the next, over the last two steps or more, if each value is above the one before."""
    begun = next((place for place in range(len(values) - 1, 0, -1) if values[place] <= values[place - 1]), 0)
    return max(
        ((values[-1] - values[place]) / (len(values) - 1 - place) for place in range(begun, len(values) - 2)),
        default=0.0,
    )


@lru_cache(maxsize=256)
def _trend(values: tuple[float, ...]) -> float:
    if trend.rising_p(values) >= TREND_P:
        return 0.0
    return max(0.0, trend.slope(values) * (len(values) - 1))


def _jump(values: Sequence[float]) -> float:
    """The last values may leave all before them behind: what gains ten percent a step is over before it is a trend."""
    if leap := _leap(values):
        return leap
    *before, second, last = values
    low, high = min(before), max(before)
    return last - high if min(last, second) - high > (high - low) else 0.0


def _leap(values: Sequence[float]) -> float:
    """Of the last value over all before, of which there are three at least."""
    *before, last = values
    low, high = min(before), max(before)
    return last - high if len(values) > 3 and last - high > JUMP_RANGES * (high - low) else 0.0  # noqa: PLR2004


def _shift(values: Sequence[float]) -> float:
    """The last few values, a step up or the beginning of a slope, may be further above all before than those range."""
    for last in range(RECENT, 2, -1):
        before, after = values[:-last], values[-last:]
        if len(before) > last and min(after) - max(before) > max(before) - min(before):
            return values[-1] - max(before)
    return 0.0


def correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Kendall's rank correlation of pairs, 0 where negative or where there are too few."""
    if len(pairs) < TREND_MIN:
        return 0.0
    signs = [sign for a, b in combinations(pairs, 2) if (sign := _sign(b[0] - a[0]) * _sign(b[1] - a[1]))]
    return max(0.0, sum(signs) / len(signs)) if signs else 0.0


def usual_range(values: Sequence[float]) -> float:
    """From the lowest to the highest, but for the last few, which may be what has begun to rise."""
    usual = values[:-RECENT] if len(values) > 2 * RECENT else values
    return max(usual) - min(usual) if usual else 0.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
