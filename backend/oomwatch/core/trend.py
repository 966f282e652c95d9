"""Is a short series rising, or does it only look so? Mann-Kendall for whether, Theil-Sen for how fast.

Both look at the order and the differences of all pairs of values and at no model of the noise, so an odd value moves
them little. (H. B. Mann 1945, M. G. Kendall 1975; H. Theil 1950, P. K. Sen 1968.)
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import erfc, sqrt
from statistics import median

EXACT_MAX = 12  # up to here the distribution is counted out; beyond, it is close enough to normal


def rising_p(values: Sequence[float]) -> float:
    """How probable it is that a series without trend looks as much like rising as this one: one-sided p-value."""
    return score_p(len(values), score(values))


def score(values: Sequence[float]) -> int:
    """Pairs in order minus pairs out of order."""
    return sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))


def score_p(n: int, reached: int) -> float:
    """The p-value of a score of n values."""
    if n <= EXACT_MAX:
        return _exact_p(n, reached)
    return 0.5 * erfc((reached - 1) / score_deviation(n) / sqrt(2))


def score_deviation(n: int) -> float:
    """Standard deviation of the score of n values without trend."""
    return sqrt(n * (n - 1) * (2 * n + 5) / 18)


def slope(values: Sequence[float]) -> float:
    """Rise from one value to the next: the median over all pairs."""
    pairs = combinations(enumerate(values), 2)
    return median((later - earlier) / (j - i) for (i, earlier), (j, later) in pairs)


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
