"""PURE: values over time, downsampled so that no peak is lost."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import ceil

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
        for at_ms, low, high, mean, count in zip(*part, strict=True):
            if not count or low != low:  # noqa: PLR0124 - NaN is not itself
                continue
            index = at_ms // self._step_ms
            point = self._points.get(index)
            if point is None:
                self._points[index] = Point(low, high, mean * count, count)
            else:
                point.low, point.high = min(point.low, low), max(point.high, high)
                point.total += mean * count
                point.count += count

    def add(self, at_ms: Sequence[int], values: Sequence[float]) -> None:
        """Take in values in the order of their time; NaN is missing. Parts may overlap and come in any order."""
        first = bisect_left(at_ms, self._start_ms)
        stop = bisect_right(at_ms, self._end_ms)
        while first < stop:
            index = at_ms[first] // self._step_ms
            after = bisect_left(at_ms, (index + 1) * self._step_ms, first, stop)
            self._fold(index, [value for value in values[first:after] if value == value])  # noqa: PLR0124 - not NaN
            first = after

    def points(self, *, with_gaps: bool) -> list[tuple[float, Point | None]]:
        """(start of the bucket in Unix seconds, what is in it), oldest first.

        With gaps, a bucket without values between two that have some is None; else it is left out.
        """
        if not self._points:
            return []
        indexes = range(min(self._points), max(self._points) + 1) if with_gaps else sorted(self._points)
        return [(index * self._step_ms / 1000, self._points.get(index)) for index in indexes]

    def _fold(self, index: int, values: list[float]) -> None:
        if not values:
            return
        point = self._points.get(index)
        if point is None:
            self._points[index] = Point(min(values), max(values), sum(values), len(values))
            return
        point.low = min(point.low, *values)
        point.high = max(point.high, *values)
        point.total += sum(values)
        point.count += len(values)
