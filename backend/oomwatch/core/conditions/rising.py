"""A signal is above a bound and still rising."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.climb import climb, is_highest_so_far, is_record, risen
from oomwatch.core.conditions.of_signal import OfSignal
from oomwatch.core.fleet import Fleet
from oomwatch.core.lives import RunNews
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict, inactive
from oomwatch.core.window import WINDOW_SECONDS_MAX, Point, Window
from oomwatch.units import Duration, Quantity, format_duration

PEAKS = 20  # the window is cut into as many slices, each a training step or longer, and each has one peak
# How often this is wrong, and how early it is right: bench/trend.py, docs/reference/performance.md.
TREND_PEAKS_MIN = 6  # fewer cannot be that significant
# A steep rise is believed sooner: of the first peaks, or of the last ones where they leave all before them behind.
STEEP_RATIO = 0.05  # of the bound's unit; for shares of the card, five percent of it
STEEP_PEAKS = 4
LEAP_REST_RATIO = 0.2  # of the largest rise: the others together are less only where it was one leap
LOADING_RATIO = 0.6  # peaks before one lower than this share of the last are of a program that loads, and no trend
RECENT_SLICES = 2
JUDGED_SECONDS = 10.0
RECENT_SECONDS_MIN = 120.0


class Rising(OfSignal, frozen=True, kw_only=True, tag="rising"):
    """{kind: rising, metric: torch_reserved_ratio, above: 90%, by: 0.5%, window: 20m}

    The raw line is a sawtooth, so peaks are compared: of the run's steps where those are known, else of slices of time
    (readings of a probe) or of the line itself. The signal is rising if the last peaks are above the bound and show a
    climb (core/climb.py) that amounts to `by`, as they did a peak ago, or rise steeply one after the other.
    """

    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = ("earlier_peak_ratio", "risen_ratio", "over_seconds")

    above: Quantity
    by: Quantity = Quantity(0.005)
    window: Duration = Duration(1200)

    def __post_init__(self) -> None:
        if self.signal.window is None:
            raise ValueError(f'"{self.metric}" keeps no window to look for a rise in')
        self.signal.check_bound("above", self.above)
        self.signal.check_bound("by", self.by)
        if not 0 < self.window <= WINDOW_SECONDS_MAX:
            raise ValueError(f"window must be more than 0s and at most {format_duration(WINDOW_SECONDS_MAX)}")

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        """Worked out anew where there is another peak, and every ten seconds for what time changes."""
        window = self.signal.window(fleet, subject) if self.signal.window else None
        memo = fleet.memo_of(subject)
        if window is None or memo is None:
            return UNKNOWN
        return memo.once(
            self, (window.latest(), now // JUDGED_SECONDS), lambda: self._judge(fleet, subject, window, now)
        )

    def _judge(self, fleet: Fleet, subject: Subject, window: Window, now: float) -> Verdict:
        rhythm_seconds = fleet.rhythm_seconds(subject)
        slice_seconds = max(self.window / PEAKS, rhythm_seconds)
        since = max(now - PEAKS * slice_seconds, fleet.warm_since(subject))
        points = window.between(since, now)
        if not points or now - points[-1].at > max(RECENT_SECONDS_MIN, RECENT_SLICES * slice_seconds):
            return self._without_points(fleet, subject, now)
        in_time = rhythm_seconds > 0 or fleet.is_probed(subject, now)
        peaks = _without_loading(_sliced(points, slice_seconds) if in_time else _local(points))
        if not self.holds_for(peaks):
            return inactive(max(peaks[-2:], default=points[-1].value), float(self.above), self.signal.unit)
        facts: dict[str, wire.Fact] = {
            "earlier_peak_ratio": peaks[0],
            "risen_ratio": peaks[-1] - peaks[0],
            "over_seconds": points[-1].at - points[0].at,
        }
        return Verdict("active", max(peaks[-2:]), float(self.above), self.signal.unit, facts)

    def _without_points(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        """Nothing was told lately: where the device itself has room, the signal cannot be high."""
        ceiling = self.signal.ceiling(fleet, subject, now) if self.signal.ceiling else None
        return INACTIVE if ceiling is not None and ceiling <= self.above else UNKNOWN

    def holds_for(self, peaks: Sequence[float]) -> bool:
        """Whether these peaks, oldest first, are above the bound and rising."""
        return max(peaks[-2:]) > self.above and self._is_rising(peaks)

    def _is_rising(self, peaks: Sequence[float]) -> bool:
        if len(peaks) < TREND_PEAKS_MIN:
            return _is_steep(peaks, STEEP_RATIO)
        if self._climbs(peaks) and self._climbs(peaks[:-1]):
            return True
        last = peaks[-STEEP_PEAKS:]
        return _is_steep(last, STEEP_RATIO) and last[-1] - max(peaks[:-STEEP_PEAKS]) >= STEEP_RATIO

    def _climbs(self, peaks: Sequence[float]) -> bool:
        return (
            is_record(peaks) and not is_highest_so_far(peaks) and climb(peaks) is not None and risen(peaks) >= self.by
        )


def _is_steep(peaks: Sequence[float], by: float) -> bool:
    """The last three peaks or more rise, each above the one before, by that much in all, and not in one leap."""
    falls = [index for index, (before, later) in enumerate(pairwise(peaks), start=1) if later <= before]
    rising = peaks[falls[-1] :] if falls else peaks
    rises = [later - before for before, later in pairwise(rising)]
    return len(rises) > 1 and sum(rises) >= by and sum(rises) - max(rises) >= LEAP_REST_RATIO * max(rises)


def _without_loading(peaks: list[float]) -> list[float]:
    """The peaks since the program was up."""
    low = [index for index, peak in enumerate(peaks) if peak < LOADING_RATIO * peaks[-1]]
    return peaks[low[-1] + 1 :] if low else peaks


def _sliced(points: Sequence[Point], slice_seconds: float) -> list[float]:
    """The peak of each slice of time that has points. The slice that still runs counts once it is the higher."""
    slices = groupby(points, key=lambda point: point.at // slice_seconds)
    peaks = [max(point.value for point in group) for _, group in slices]
    return peaks[:-1] if len(peaks) > 1 and peaks[-1] < peaks[-2] else peaks


def _local(points: Sequence[Point]) -> list[float]:
    """The peaks of the line: values with none higher beside them; every value of a line that never falls."""
    values = [point.value for point in points]
    if all(later >= before for before, later in pairwise(values)):
        return values[-PEAKS:]
    low = float("-inf")
    triples = zip([low, *values[:-1]], values, [*values[1:], low], strict=True)
    return [value for before, value, after in triples if before < value >= after][-PEAKS:]
