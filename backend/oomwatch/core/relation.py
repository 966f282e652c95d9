"""How one number of the steps follows another: as the peak of a phase follows the length of the responses.

The same two tools as trend.py, with another number in the place of time: Kendall's tau for whether, Theil-Sen for how
much, and Sen's interval for how sure (P. K. Sen, J. Am. Stat. Assoc. 63, 1968).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import combinations
from math import ceil
from statistics import median
from typing import NamedTuple

from oomwatch.core import trend

SURE_DEVIATIONS = 3.3  # one-sided 99.95 %: it is asked anew at every step


class Line(NamedTuple):
    """y ~ middle_y + slope * (x - middle_x). `flattest` is the lower limit of the slope, `spread` that of the noise."""

    middle_x: float
    middle_y: float
    slope: float
    flattest: float
    spread: float
    p: float  # how probable so much agreement is by chance

    def at(self, x: float) -> float:
        return self.middle_y + self.slope * (x - self.middle_x)

    def at_least(self, x: float) -> float:
        """What y is at an x beyond the middle, if the slope is as flat as it can be."""
        return self.middle_y + self.flattest * (x - self.middle_x)


def line_through(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through (x, y) points, or None where all have the same x."""
    slopes = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x1 != x2)
    if not slopes:
        return None
    score = len(slopes) - bisect_right(slopes, 0.0) - bisect_left(slopes, 0.0)
    slope, middle_x = median(slopes), median(x for x, _ in points)
    middle_y = median(y - slope * (x - middle_x) for x, y in points)
    offs = [abs(y - middle_y - slope * (x - middle_x)) for x, y in points]
    below = (len(slopes) - ceil(SURE_DEVIATIONS * trend.score_deviation(len(points)))) // 2
    return Line(
        middle_x=middle_x,
        middle_y=middle_y,
        slope=slope,
        flattest=slopes[below] if below >= 0 else float("-inf"),
        spread=trend.NORMAL_PER_MAD * median(offs),
        p=trend.score_p(len(points), score),
    )
