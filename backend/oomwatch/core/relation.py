"""How one number of the steps follows another: as the peak of a phase follows the length of the responses.

The same two tools as trend.py, with another number in the place of time: Kendall's tau for whether, Theil-Sen for how
much, and Sen's interval for how sure (P. K. Sen, J. Am. Stat. Assoc. 63, 1968).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import ceil
from statistics import fmean, median
from typing import NamedTuple

from oomwatch.core import trend

SURE_DEVIATIONS = 2.2  # one-sided 98.6 %: it is asked anew at every step

Point = tuple[float, float]


class Slope(NamedTuple):
    """`flattest` is its lower limit."""

    likeliest: float
    flattest: float
    p: float  # how probable so much agreement is by chance


class Line(NamedTuple):
    """y ~ middle_y + slope * (x - middle_x). `spread` is the deviation of the points from it."""

    middle_x: float
    middle_y: float
    slope: Slope
    spread: float

    def at(self, x: float) -> float:
        return self.middle_y + self.slope.likeliest * (x - self.middle_x)

    def at_least(self, x: float) -> float:
        """What y is at an x beyond the middle, if the slope is as flat as it can be."""
        return self.middle_y + self.slope.flattest * (x - self.middle_x)


def slope_through(points: Sequence[Point]) -> Slope | None:
    """The slope of (x, y) points, or None where all have the same x."""
    slopes = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x1 != x2)
    if not slopes:
        return None
    score = len(slopes) - bisect_right(slopes, 0.0) - bisect_left(slopes, 0.0)
    below = (len(slopes) - ceil(SURE_DEVIATIONS * trend.score_deviation(len(points)))) // 2
    return Slope(
        likeliest=median(slopes),
        flattest=slopes[below] if below >= 0 else float("-inf"),
        p=trend.score_p(len(points), score),
    )


def line_with(slope: Slope, points: Sequence[Point]) -> Line:
    """The line of that slope through the middle of the points."""
    middle_x = median(x for x, _ in points)
    middle_y = median(y - slope.likeliest * (x - middle_x) for x, y in points)
    offs = [abs(y - middle_y - slope.likeliest * (x - middle_x)) for x, y in points]
    return Line(middle_x, middle_y, slope, spread=trend.NORMAL_PER_MAD * median(offs))


def together(series: Iterable[Mapping[float, float]]) -> dict[float, float]:
    """What several series have in common: at each place the mean of what those that are there are above their medians.

    What is one's own, its level and most of its noise, falls out.
    """
    off: dict[float, list[float]] = {}
    for one in series:
        middle = median(one.values()) if one else 0.0
        for place, value in one.items():
            off.setdefault(place, []).append(value - middle)
    return {place: fmean(values) for place, values in off.items()}
