"""Short histories kept in memory, ordered by time, bounded by age."""

from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

WINDOW_SECONDS_MAX = 21600.0  # what a rule may look back: eight steps of three quarters of an hour


class Point(NamedTuple):
    at: float  # Unix seconds
    value: float


class Window:
    """Points of the last `keep_seconds`, in order of time; a late point goes where it belongs."""

    __slots__ = ("_keep_seconds", "_points")

    def __init__(self, keep_seconds: float) -> None:
        self._keep_seconds = keep_seconds
        self._points: list[Point] = []

    def add(self, at: float, value: float) -> None:
        if self._points and at < self._points[-1].at:
            insort(self._points, Point(at, value))
        else:
            self._points.append(Point(at, value))
        oldest = self._points[-1].at - self._keep_seconds
        if self._points[0].at < oldest:
            del self._points[: bisect_left(self._points, Point(oldest, float("-inf")))]

    def add_peak(self, at: float, value: float, slice_seconds: float) -> None:
        """Like add, but of the points within a slice of time only the highest is kept."""
        last = self.latest()
        if last is None or at - last.at >= slice_seconds:
            self.add(at, value)
        elif value > last.value and at >= last.at:
            self._points[-1] = Point(last.at, value)

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._points = [Point(point.at + seconds, point.value) for point in self._points]

    def latest(self) -> Point | None:
        return self._points[-1] if self._points else None

    def between(self, start: float, end: float) -> list[Point]:
        """Points with start <= at <= end, oldest first."""
        first = bisect_left(self._points, Point(start, float("-inf")))
        return self._points[first : bisect_right(self._points, Point(end, float("inf")))]


class PeakWindow:
    """The highest value in each slice of `slice_seconds`: peaks survive, at a fraction of the points."""

    __slots__ = ("_open_slice", "_open_value", "_slice_seconds", "_window")

    def __init__(self, slice_seconds: float, keep_seconds: float) -> None:
        self._slice_seconds = slice_seconds
        self._window = Window(keep_seconds)
        self._open_slice = float("-inf")
        self._open_value = float("-inf")

    def add(self, at: float, value: float) -> None:
        start = at - at % self._slice_seconds
        if start == self._open_slice:
            self._open_value = max(self._open_value, value)
        elif start < self._open_slice:
            self._window.add(start, value)
        else:
            if self._open_value > float("-inf"):
                self._window.add(self._open_slice, self._open_value)
            self._open_slice, self._open_value = start, value

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much; slices stay whole."""
        whole = round(seconds / self._slice_seconds) * self._slice_seconds
        self._window.shift(whole)
        self._open_slice += whole

    def peak(self, start: float, end: float) -> float | None:
        """The highest value of the slices that overlap [start, end]; None where there is none."""
        values = [point.value for point in self._window.between(start - self._slice_seconds, end)]
        if start - self._slice_seconds < self._open_slice <= end:
            values.append(self._open_value)
        return max(values, default=None)
