"""When will a GPU be full whose program tells of no training steps? Peaks and floors of five-minute blocks say.

Traffic lifts peaks and leaves floors where they are; work that ends lifts floors and not peaks; a model that is loaded
lifts both, at once. A leak lifts both, little by little. So over one of several spans of time both must rise, must
still be rising and have left behind what was usual, and a straight line must explain the peaks better than one jump
does. Far from the capacity that is believed if the line reaches it soon; near it, the line may be less straight.

How often this is wrong, how early it is right and how little that depends on each number here: bench/blocks.py,
docs/reference/performance.md. Slopes and their interval: H. Theil 1950, P. K. Sen 1968; order: M. G. Kendall 1938.
"""

from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from oomwatch.core import trend
from oomwatch.core.peaks import Block

BLOCK_SECONDS = 300.0
HISTORY_BLOCKS_MIN = 6  # fewer say nothing of what was usual
SURE_Z = 2.576  # of the slope, an interval of 99 %: neighbouring peaks are alike, so it holds less often than that


class Span(NamedTuple):
    """A length of time to look back on: so many points, each the peak (and the floor) of so many blocks."""

    points: int
    blocks: int


FAR_SPANS = (Span(6, 2), Span(6, 3), Span(6, 6), Span(12, 6))  # one hour to six
NEAR_SPANS = (Span(6, 1), Span(6, 2), Span(12, 1), Span(12, 2), Span(12, 3), Span(12, 6))  # half an hour to six
SPANS = tuple(dict.fromkeys((*FAR_SPANS, *NEAR_SPANS)))
SLOTS = max(span.points * span.blocks for span in SPANS)  # six hours


class Limits(NamedTuple):
    """What is asked of a rise before it is believed to be a leak."""

    horizon_seconds: float = 2700.0
    near_horizon_seconds: float = 7200.0
    near_ratio: float = 0.9  # of the capacity
    peaks_tau: float = 0.6  # pairs in order less pairs out of order, as a share of all: of twelve points, p < 0.004
    floors_tau: float = 0.3  # floors are of few readings, and rougher
    recent_ratio: float = 0.25  # the slope of the later half, as a share of that of all points
    growth_ratio: float = 0.05  # of the capacity, over the span
    usual_deviations: float = 3.0  # so far the level must be from what was usual before the span
    misfit: float = 1.0
    near_misfit: float = 2.0


LIMITS = Limits()


class BlockForecast(NamedTuple):
    """Memory will be full in about eta_seconds, if it goes on as it did."""

    slope_bytes_per_second: float
    level_bytes: float  # what a usual peak reaches now
    eta_seconds: float
    eta_low_seconds: float  # if the highest peak of the span comes again, and growth is at its interval's upper end
    eta_high_seconds: float | None  # a usual peak, and growth at the lower end; None: may be never
    over_seconds: float  # the span that was looked back on
    p: float  # how probable peaks without a trend are to look as much like one (Mann-Kendall)


class _Envelope(NamedTuple):
    peaks: Sequence[float]
    floors: Sequence[float]


class _Rise(NamedTuple):
    """Peaks that rise steadily, with floors that do so too."""

    span: Span
    peaks: Sequence[float]
    slopes: Sequence[float]  # bytes a point, of all pairs of peaks, sorted
    common_slope: float  # what peaks and floors both rise by
    misfit: float
    before: Sequence[float]  # peaks of the blocks before the span

    @property
    def slope(self) -> float:
        return median(self.slopes)

    @property
    def point_seconds(self) -> float:
        return self.span.blocks * BLOCK_SECONDS

    @property
    def levels(self) -> list[float]:
        """What each peak would be by now."""
        slope, last = self.slope, len(self.peaks) - 1
        return [peak + slope * (last - index) for index, peak in enumerate(self.peaks)]


def forecast(
    fives: Sequence[Block], capacity_bytes: float, running: Block | None = None, limits: Limits = LIMITS
) -> BlockForecast | None:
    """What the closed five-minute blocks of a GPU's used memory, oldest first and up to six hours of them, foretell.

    running: the block that has not closed yet, so that a fast leak need not wait. None: no leak, or not surely one, or
    too little is known: half an hour at least is needed, and a block for each point of a span.
    """
    slots = _slots(fives, running)
    rises = [rise for span in SPANS if (rise := _rise(slots, running, span, limits))]
    believed = [rise for rise in rises if _is_believed(rise, capacity_bytes, limits)]
    return _foretell(min(believed, key=lambda rise: rise.misfit), capacity_bytes) if believed else None


def _slots(fives: Sequence[Block], running: Block | None) -> _Envelope:
    """One peak and floor for each five minutes of the last hours, oldest first; infinite where there was no block."""
    peaks, floors = [float("-inf")] * SLOTS, [float("inf")] * SLOTS
    newest = running.at - BLOCK_SECONDS if running else fives[-1].at if fives else 0.0
    for block in fives[-SLOTS:]:
        back = round((newest - block.at) / BLOCK_SECONDS)
        if 0 <= back < SLOTS:
            peaks[-1 - back], floors[-1 - back] = block.peak_bytes, block.floor_bytes
    return _Envelope(peaks, floors)


def _envelope(slots: _Envelope, running: Block | None, span: Span) -> _Envelope | None:
    starts = range(SLOTS - span.points * span.blocks, SLOTS, span.blocks)
    peaks = [max(slots.peaks[start : start + span.blocks]) for start in starts]
    if float("-inf") in peaks:
        return None
    floors = [min(slots.floors[start : start + span.blocks]) for start in starts]
    if running:
        peaks[-1], floors[-1] = max(peaks[-1], running.peak_bytes), min(floors[-1], running.floor_bytes)
    return _Envelope(peaks, floors)


def _rise(slots: _Envelope, running: Block | None, span: Span, limits: Limits) -> _Rise | None:
    envelope = _envelope(slots, running, span)
    if envelope is None:
        return None
    peaks, floors = envelope
    if trend.tau(peaks) < limits.peaks_tau or trend.tau(floors) < limits.floors_tau:
        return None
    slopes = trend.slopes(peaks)
    slope, later_half = median(slopes), peaks[len(peaks) // 2 :]
    common_slope = min(slope, trend.slope(floors))
    if common_slope <= 0 or trend.slope(later_half) < limits.recent_ratio * slope:
        return None
    before = [peak for peak in slots.peaks[: SLOTS - span.points * span.blocks] if peak >= 0]
    return _Rise(span, peaks, slopes, common_slope, _misfit(peaks), before)


def _is_believed(rise: _Rise, capacity_bytes: float, limits: Limits) -> bool:
    if rise.slope * rise.span.points < limits.growth_ratio * capacity_bytes:
        return False
    if len(rise.before) >= HISTORY_BLOCKS_MIN and median(rise.levels) < _usual_at_most(rise.before, limits):
        return False
    reach_points = (capacity_bytes - max(rise.levels)) / rise.common_slope
    reach_seconds = reach_points * rise.point_seconds
    if rise.span in NEAR_SPANS and rise.peaks[-1] >= limits.near_ratio * capacity_bytes:
        return rise.misfit <= limits.near_misfit and reach_seconds <= limits.near_horizon_seconds
    return rise.span in FAR_SPANS and rise.misfit <= limits.misfit and reach_seconds <= limits.horizon_seconds


def _usual_at_most(peaks: Sequence[float], limits: Limits) -> float:
    return median(peaks) + limits.usual_deviations * trend.scatter(peaks)


def _foretell(rise: _Rise, capacity_bytes: float) -> BlockForecast:
    level, highest = median(rise.levels), max(rise.levels)
    room, least_room = max(0.0, capacity_bytes - level), max(0.0, capacity_bytes - highest)
    low, high = trend.slope_interval(rise.slopes, rise.span.points, SURE_Z)
    return BlockForecast(
        slope_bytes_per_second=rise.slope / rise.point_seconds,
        level_bytes=level,
        eta_seconds=room / rise.slope * rise.point_seconds,
        eta_low_seconds=least_room / high * rise.point_seconds,
        eta_high_seconds=room / low * rise.point_seconds if low > 0 else None,
        over_seconds=rise.span.points * rise.point_seconds,
        p=trend.rising_p(rise.peaks),
    )


def _misfit(values: Sequence[float]) -> float:
    """What the best straight line leaves unexplained, as a share of what the best single jump does (squares)."""
    count = len(values)
    middle, mean = (count - 1) / 2, sum(values) / count
    deviations = [value - mean for value in values]
    squares = sum(deviation * deviation for deviation in deviations)
    along = sum((index - middle) * deviation for index, deviation in enumerate(deviations))
    by_line = squares - along * along * 12 / (count * (count * count - 1))
    sums = list(accumulate(deviations))[:-1]
    by_jump = squares - max(total * total * count / (done * (count - done)) for done, total in enumerate(sums, 1))
    if by_jump <= 1e-9 * squares:  # nothing but rounding
        return float("inf")
    return by_line / by_jump
