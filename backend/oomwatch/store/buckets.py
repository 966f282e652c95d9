"""PURE: values over time, downsampled so that no peak is lost."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import compress
from math import ceil
from operator import mul

from msgspec import Struct

from oomwatch.store.tiers import Rolled

# More points than a wide screen has columns of pixels; 5000 points of four columns are 150 KB of JSON.
MAX_POINTS = 5000


class Point(Struct):
    """Least, greatest, sum and number of the values in one bucket."""

    low: float
    high: float
    total: float
    count: int


class Buckets:
    """Buckets of equal width that begin at multiples of the width, so that a chart drawn again has the same ones."""

    def __init__(self, start: float, end: float, step: float) -> None:
        """Unix seconds, both inclusive. A step that gives more than MAX_POINTS is raised. ValueError: no such range."""
        if not (0 <= start <= end < float("inf")):
            raise ValueError(f"the range from {start} to {end} is none: end must not be before start")
        if not 0 < step < float("inf"):
            raise ValueError(f"step must be more than 0 seconds, not {step}")
        self._start_ms, self._end_ms = round(start * 1000), round(end * 1000)
        self._step_ms = max(1, ceil(step * 1000))
        if (self._end_ms - self._start_ms) / self._step_ms > MAX_POINTS - 2:
            self._step_ms = 1000 * ceil((self._end_ms - self._start_ms) / (MAX_POINTS - 2) / 1000)
        self._points: dict[int, Point] = {}

    @property
    def step_seconds(self) -> float:
        """The width in force."""
        return self._step_ms / 1000

    @property
    def step_ms(self) -> int:
        """The same in milliseconds."""
        return self._step_ms

    def add_rolled(self, part: Rolled) -> None:
        """Take in what was bucketed before, in buckets of which ours are some wide. Those that reach in count whole."""
        at_ms, lows, highs, means, counts = part if all(part.counts) else _known(part)
        totals = list(map(mul, means, counts))
        first, rows, step_ms = 0, len(at_ms), self._step_ms
        while first < rows:
            index = at_ms[first] // step_ms
            end_ms, after = (index + 1) * step_ms, first + 1
            while after < rows and at_ms[after] < end_ms:  # a few: looking for the end would take longer
                after += 1
            ours = slice(first, after)
            self._join(index, Point(min(lows[ours]), max(highs[ours]), sum(totals[ours]), sum(counts[ours])))
            first = after

    def add(self, at_ms: Sequence[int], values: Sequence[float]) -> None:
        """Take in values in the order of their time; NaN is missing. Parts may overlap and come in any order."""
        first = bisect_left(at_ms, self._start_ms)
        stop = bisect_right(at_ms, self._end_ms)
        while first < stop:
            index = at_ms[first] // self._step_ms
            after = bisect_left(at_ms, (index + 1) * self._step_ms, first, stop)
            known = [value for value in values[first:after] if value == value]  # noqa: PLR0124 - not NaN
            if known:
                self._join(index, Point(min(known), max(known), sum(known), len(known)))
            first = after

    def points(self, *, with_gaps: bool) -> list[tuple[float, Point | None]]:
        """(start of the bucket in Unix seconds, what is in it), oldest first.

        With gaps, a bucket without values between two that have some is None; else it is left out.
        """
        if not self._points:
            return []
        indexes = range(min(self._points), max(self._points) + 1) if with_gaps else sorted(self._points)
        return [(index * self._step_ms / 1000, self._points.get(index)) for index in indexes]

    def _join(self, index: int, new: Point) -> None:
        known = self._points.setdefault(index, new)
        if known is not new:
            known.low, known.high = min(known.low, new.low), max(known.high, new.high)
            known.total, known.count = known.total + new.total, known.count + new.count


def _known(part: Rolled) -> Rolled:
    """Without the buckets that have none of the field."""
    at_ms, low, high, mean, counts = (list(compress(column, part.counts)) for column in part)
    return Rolled(at_ms, low, high, mean, counts)  # type: ignore[arg-type]
