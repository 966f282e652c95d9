"""Short histories kept in memory, ordered by time, bounded by age."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

WINDOW_SECONDS_MAX = 21600.0  # what a rule may look back: eight steps of three quarters of an hour


class Point(NamedTuple):
    at: float  # Unix seconds
    value: float


class Window:
    """Points of the last `keep_seconds`, in order of time; a late point goes where it belongs.

    In two arrays, for each GPU has such windows: a point takes 16 bytes, where an object of its own takes 130.
    """

    __slots__ = ("_at", "_keep_seconds", "_values")

    def __init__(self, keep_seconds: float) -> None:
        self._keep_seconds = keep_seconds
        self._at = array("d")
        self._values = array("d")

    def add(self, at: float, value: float) -> None:
        place = len(self._at)
        if place and at < self._at[-1]:
            place = bisect_right(self._at, at)
        self._at.insert(place, at)
        self._values.insert(place, value)
        oldest = self._at[-1] - self._keep_seconds
        if self._at[0] < oldest:
            first = bisect_left(self._at, oldest)
            del self._at[:first], self._values[:first]

    def add_peak(self, at: float, value: float, slice_seconds: float) -> None:
        """Like add, but of the points within a slice of time only the highest is kept."""
        if not self._at or at - self._at[-1] >= slice_seconds:
            self.add(at, value)
        elif value > self._values[-1] and at >= self._at[-1]:
            self._values[-1] = value

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._at = array("d", [at + seconds for at in self._at])

    def latest(self) -> Point | None:
        return Point(self._at[-1], self._values[-1]) if self._at else None

    def between(self, start: float, end: float) -> list[Point]:
        """Points with start <= at <= end, oldest first."""
        first, last = self._within(start, end)
        return [Point(at, value) for at, value in zip(self._at[first:last], self._values[first:last], strict=True)]

    def highest(self, start: float, end: float) -> float | None:
        """The highest value of the points with start <= at <= end; None where there is none."""
        first, last = self._within(start, end)
        return max(self._values[first:last], default=None)

    def _within(self, start: float, end: float) -> tuple[int, int]:
        return bisect_left(self._at, start), bisect_right(self._at, end)


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

    def extend(self, times: Sequence[float], values: Sequence[float]) -> None:
        """The same for several, at once where all are of the running slice."""
        if self._open_slice <= min(times) and max(times) < self._open_slice + self._slice_seconds:
            self._open_value = max(self._open_value, *values)
            return
        for at, value in zip(times, values, strict=True):
            self.add(at, value)

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much; slices stay whole."""
        whole = round(seconds / self._slice_seconds) * self._slice_seconds
        self._window.shift(whole)
        self._open_slice += whole

    def peak(self, start: float, end: float) -> float | None:
        """The highest value of the slices that overlap [start, end]; None where there is none."""
        closed = self._window.highest(start - self._slice_seconds, end)
        if start - self._slice_seconds < self._open_slice <= end:
            return self._open_value if closed is None else max(closed, self._open_value)
        return closed
