"""Is a short series rising, or does it only look so? Mann-Kendall for whether, Theil-Sen for how fast.

Both look at the order and the differences of all pairs of values and at no model of the noise, so an odd value moves
them little. (H. B. Mann 1945, M. G. Kendall 1975; H. Theil 1950, P. K. Sen 1968.)
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from math import erfc, sqrt
from statistics import median

LONG, SHORT = 30, 12  # values: the two windows that have to agree
MEMORY_MAX, MEMORY_UNSURE = 0.9, 0.4
EXACT_RATIO = 1e-9  # of the values: what is less is rounding
NORMAL_PER_MAD = 1.4826  # standard deviation by median absolute deviation, of what is distributed normally
EXACT_MAX = 12  # up to here the distribution is counted out; beyond, it is close enough to normal


def rising_p(values: Sequence[float]) -> float:
    """How probable it is that a series without trend looks as much like rising as this one: one-sided p-value."""
    return score_p(len(values), score(values))


def score(values: Sequence[float]) -> int:
    """Pairs in order minus pairs out of order: of each value, the smaller ones before it minus the greater ones."""
    before: list[float] = []
    reached = 0
    for value in values:
        below, up_to = bisect_left(before, value), bisect_right(before, value)
        reached += below - (len(before) - up_to)
        before.insert(up_to, value)
    return reached


def score_p(n: int, reached: int) -> float:
    """The p-value of a score of n values."""
    if n <= EXACT_MAX:
        return _exact_p(n, reached)
    return 0.5 * erfc((reached - 1) / score_deviation(n) / sqrt(2))


def score_deviation(n: int) -> float:
    """Standard deviation of the score of n values without trend."""
    return sqrt(n * (n - 1) * (2 * n + 5) / 18)


def tau(values: Sequence[float]) -> float:
    """Kendall's tau-a with time: 1 where each value is above all before it, -1 where below."""
    return score(values) / (len(values) * (len(values) - 1) // 2)


def slope(values: Sequence[float]) -> float:
    """Rise from one value to the next: the median over all pairs."""
    found = slopes(values)
    half = len(found) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2


def slopes(values: Sequence[float]) -> list[float]:
    """Rise from one value to the next, of each pair of values, sorted."""
    pairs = combinations(enumerate(values), 2)
    return sorted((later - earlier) / (j - i) for (i, earlier), (j, later) in pairs)


def slope_interval(sorted_slopes: Sequence[float], n: int, deviations: float) -> tuple[float, float]:
    """Between which slopes the true one lies, by those of all pairs of n values (Sen 1968)."""
    below = max(0, round((len(sorted_slopes) - deviations * score_deviation(n)) / 2))
    return sorted_slopes[below], sorted_slopes[-1 - below]


def scatter(values: Sequence[float]) -> float:
    """Standard deviation of normal noise, from the median deviation: odd values count little."""
    middle = median(values)
    return NORMAL_PER_MAD * median(abs(value - middle) for value in values)


def remembering_p(values: Sequence[float]) -> float:
    """`rising_p` for noise that remembers: successive values are less than independent, and prove less.

    How much they remember is told by how far they get in two steps and in one, in which a trend that has only begun
    hardly shows: of noise whose memory is phi, the squares of these are as 1 + phi to 1. So short a series tells that
    only to a quarter or so, which is given to the trend.
    """
    if len(values) <= EXACT_MAX:
        return rising_p(values)
    once = _scattered(values, 1)
    straight = once <= (EXACT_RATIO * max(map(abs, values))) ** 2
    found = 0.0 if straight else _scattered(values, 2) / once - 1
    memory = min(MEMORY_MAX, max(0.0, found - MEMORY_UNSURE))
    deviation = score_deviation(len(values)) * sqrt((1 + memory) / (1 - memory))
    return 0.5 * erfc((score(values) - 1) / deviation / sqrt(2))


def _scattered(values: Sequence[float], lag: int) -> float:
    """Mean square of the changes over so many steps, about their median."""
    changes = [later - earlier for earlier, later in zip(values, values[lag:], strict=False)]
    middle = median(changes)
    return sum((change - middle) ** 2 for change in changes) / len(changes)


def widened_by_memory(values: Sequence[float], per_step: float) -> float:
    """How many times wider the score of such values scatters than that of independent ones (at lag 1)."""
    memory = _memory([value - per_step * index for index, value in enumerate(values)])
    return sqrt((1 + memory) / (1 - memory))


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


@lru_cache(maxsize=4096)
def _exact_p(n: int, score: int) -> float:
    """Share of the orders of n values whose score is this or more."""
    pairs = n * (n - 1) // 2
    inversions = (pairs - score) // 2  # a score counts pairs in order minus pairs out of order
    counts = _orders_by_inversions(n)
    return sum(counts[: inversions + 1]) / sum(counts)


@lru_cache(maxsize=EXACT_MAX + 1)
def _orders_by_inversions(n: int) -> tuple[int, ...]:
    """How many orders of n values have 0, 1, 2, ... pairs out of order (Mahonian numbers)."""
    counts = [1]
    for size in range(2, n + 1):
        longer = [0] * (len(counts) + size - 1)
        for inversions, count in enumerate(counts):
            for more in range(size):
                longer[inversions + more] += count
        counts = longer
    return tuple(counts)
