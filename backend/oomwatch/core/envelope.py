"""The lowest and highest reading of each moment of the recent past, until it is cut into the phases of a step."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

SLICES_MAX = 900  # a quarter of an hour of readings a second, 14 KiB a GPU
SLICES_FEW = 240  # while no step has been told: for most cards, whose programs tell of none, 4 KiB
SLICE_SECONDS_MIN = 1.0
SLICE_SECONDS_MAX = 16.0  # of all alike: four hours, or one of few; beyond that the older ones are longer


class Extremes(NamedTuple):
    low: float
    high: float

    def with_(self, other: "Extremes") -> "Extremes":
        """Those of both."""
        return Extremes(min(self.low, other.low), max(self.high, other.high))


class Envelope:
    """Slices of a second; where a step is so long that they do not fit, of two seconds, of four, and so on.

    A slice bears the time of its first reading, so that one reading a slice stays as exact as it was told.
    """

    __slots__ = ("_at", "_high", "_low", "_slice_seconds", "slices_max")

    def __init__(self, slices_max: int = SLICES_MAX) -> None:
        self.slices_max = slices_max
        self._at = array("d")
        self._low = array("f")  # bytes; exact to some KiB
        self._high = array("f")
        self._slice_seconds = SLICE_SECONDS_MIN

    def __len__(self) -> int:
        return len(self._at)

    def add(self, at: float, value: float) -> None:
        """Take a reading in, wherever in time it belongs."""
        times = self._at
        if not times or at - times[-1] >= self._slice_seconds:  # nearly always
            times.append(at)
            self._low.append(value)
            self._high.append(value)
        else:
            self._add_within(at, value)
        if len(times) > self.slices_max:
            self._make_room()

    def extend(self, times: Sequence[float], values: Sequence[float]) -> None:
        """The same for several, one after the other, with fewer steps."""
        own, low, high, slice_seconds, most = self._at, self._low, self._high, self._slice_seconds, self.slices_max
        for at, value in zip(times, values, strict=True):
            if own and at - own[-1] < slice_seconds:
                self._add_within(at, value)
            else:
                own.append(at)
                low.append(value)
                high.append(value)
            if len(own) > most:
                self._make_room()
                own, low, high, slice_seconds = self._at, self._low, self._high, self._slice_seconds

    def _add_within(self, at: float, value: float) -> None:
        place = bisect_right(self._at, at)
        if place and at - self._at[place - 1] < self._slice_seconds:
            self._low[place - 1] = min(self._low[place - 1], value)
            self._high[place - 1] = max(self._high[place - 1], value)
            return
        self._at.insert(place, at)
        self._low.insert(place, value)
        self._high.insert(place, value)

    def between(self, start: float, end: float) -> Extremes | None:
        """Over the slices whose time is within [start, end]; None where there is none."""
        first, last = bisect_left(self._at, start), bisect_right(self._at, end)
        return Extremes(min(self._low[first:last]), max(self._high[first:last])) if first < last else None

    def drop_before(self, at: float) -> None:
        """What is older has been cut, and is wanted no more."""
        first = bisect_left(self._at, at)
        del self._at[:first], self._low[:first], self._high[:first]
        if len(self._at) < self.slices_max // 2:
            self._slice_seconds = SLICE_SECONDS_MIN

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._at = array("d", [at + seconds for at in self._at])

    def _make_room(self) -> None:
        """Pairs of slices become one; of the coarsest ones those of the older half only, and these again and again.

        So nothing is lost, however long no step is told, and the latest half stays as exact as it is.
        """
        if self._slice_seconds >= SLICE_SECONDS_MAX:
            older = len(self._at) // 4 * 2
            self._low[:older] = array("f", map(min, self._low[:older:2], self._low[1:older:2]))
            self._high[:older] = array("f", map(max, self._high[:older:2], self._high[1:older:2]))
            del self._at[1:older:2]
            return
        self._slice_seconds *= 2
        at, low, high = self._at, self._low, self._high
        self._at, self._low, self._high = array("d"), array("f"), array("f")
        for moment, lowest, highest in zip(at, low, high, strict=True):
            if self._at and moment - self._at[-1] < self._slice_seconds:
                self._low[-1] = min(self._low[-1], lowest)
                self._high[-1] = max(self._high[-1], highest)
            else:
                self._at.append(moment)
                self._low.append(lowest)
                self._high.append(highest)
