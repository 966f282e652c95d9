"""Is a row of peaks growing towards a limit, and how soon is it there? For what fills up on a host.

The peaks are those of steps, or of spans of time as long as a step at least: then the sawtooth within is gone. They are
looked at one by one, in pairs, in fours and in eights, for a slow growth among noise shows in long windows alone. At
each of these scales it is believed where

- a short and a long window agree that it is significant (Mann-Kendall) and how soon it ends (Theil-Sen),
- it goes on at present: a single jump does not,
- it is not seen to level off before the limit, as a cache does that fills up,
- it has left behind what was usual before the window,
- the limit is no further ahead than one and a half times what the short window looks back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from oomwatch.core.trend import LONG, SHORT, score_p, slopes

SCALES = (1, 2, 4, 8)
FEW = 3
SIGNIFICANT_P = 0.01
GOING_ON_RATIO = 0.4  # of the short window's pace, that its later half must still have
AHEAD_RATIO = 1.5  # of the short window, that is looked ahead
USUAL_SHARE = 0.9  # of the peaks before the window, that must have been lower than where it is now
EARLIER_MIN = 6
SLOWING_RATIO = 0.1  # how much sooner than it seems a growth may level off


class Line(NamedTuple):
    """A straight line through a window."""

    p: float  # one-sided, that so much of a rise is chance
    slope: float  # from one peak to the next
    level: float  # where it stands at the last peak


class Growth(NamedTuple):
    """How many more peaks until the limit is reached: as it is seen now, and the more of that and of one peak ago."""

    left: float
    agreed: float
    slope: float  # from one peak to the next
    level: float  # that is reached now and then: spikes included
    peaks: int  # that it was seen over


def growth(peaks: Sequence[float], limit: float) -> Growth | None:
    """How the last peaks, oldest first, grow towards a limit; None where there is no growth to be believed.

    Of several scales the one counts that sees the limit nearest, if it saw the like one peak ago.
    """
    if len(peaks) < SHORT:
        return None
    room = limit - max(peaks[-SHORT:]) - (max(peaks) - min(peaks))  # that is left at least, spikes taken off
    found = [one for scale in SCALES if (one := _twice(peaks, scale, limit, room)) is not None]
    return min(found, key=lambda one: one.agreed, default=None)


def _twice(peaks: Sequence[float], scale: int, limit: float, room: float) -> Growth | None:
    found = _at_scale(peaks, scale, limit, room)
    before = _at_scale(peaks[:-1], scale, limit, room) if found else None
    return found._replace(agreed=max(found.left, before.left - 1)) if found and before else None


def _at_scale(peaks: Sequence[float], scale: int, limit: float, room: float) -> Growth | None:
    short = _grouped(peaks, scale, SHORT)
    if len(short) < SHORT or room > 2 * AHEAD_RATIO * (max(short) - min(short)):
        return None  # too few, or so flat that the steepest line through them would not get there
    now = line(short)
    if not _rises(now) or median(slopes(short[len(short) // 2 :])) < GOING_ON_RATIO * now.slope:
        return None
    values = _grouped(peaks, scale)
    long = values[-LONG:]
    over = line(long) if len(long) > len(short) else now
    if not _rises(over) or not _is_new(now.level, values[: -len(long)]):
        return None
    reach = max(0.0, *(peak - now.level for peak in peaks[-scale * SHORT :]), _spike(peaks))
    if _levels_off_at(long) + reach < limit:
        return None
    left = max(0.0, limit - now.level - reach) / min(now.slope, over.slope)
    if left > AHEAD_RATIO * len(short):
        return None
    return Growth(left * scale, left * scale, now.slope / scale, now.level + reach, len(long) * scale)


def is_undone(peaks: Sequence[float]) -> bool:
    """Whether a growth that was believed is gone: its last peaks are lower again, or there are too few to tell."""
    return len(peaks) < SHORT or max(peaks[-FEW:]) < median(peaks[-LONG:])


def line(values: Sequence[float]) -> Line:
    """Mann-Kendall's p-value and Theil-Sen's line, from one look at all pairs."""
    of_pairs = slopes(values)
    falling, not_rising = bisect_left(of_pairs, 0.0), bisect_right(of_pairs, 0.0)
    slope = median(of_pairs)
    p = score_p(len(values), len(of_pairs) - not_rising - falling)
    last = len(values) - 1
    return Line(p, slope, median(value + slope * (last - index) for index, value in enumerate(values)))


def _grouped(peaks: Sequence[float], scale: int, groups: int = 0) -> Sequence[float]:
    """The usual peak of each group of `scale`, counted from the last one; of the last `groups`, or of all."""
    if scale == 1:
        return peaks[-groups:]
    first = len(peaks) % scale if not groups else max(len(peaks) % scale, len(peaks) - scale * groups)
    middle = (scale - 1) // 2
    return [sorted(peaks[start : start + scale])[middle] for start in range(first, len(peaks), scale)]


def _rises(one: Line) -> bool:
    return one.p < SIGNIFICANT_P and one.slope > 0


def _is_new(level: float, earlier: Sequence[float]) -> bool:
    """Whether nearly all that was before is left behind."""
    return len(earlier) < EARLIER_MIN or sum(one < level for one in earlier) >= USUAL_SHARE * len(earlier)


def _spike(peaks: Sequence[float]) -> float:
    """How far a single peak stood out above the two before and the two after: a checkpoint will do so again."""
    around = zip(peaks, peaks[1:], peaks[2:], peaks[3:], peaks[4:], strict=False)
    return max(0.0, *(peak - max(a, b, c, d) for a, b, peak, c, d in around))


def _levels_off_at(values: Sequence[float]) -> float:
    """Where it ends if each third of the window gains a share of what the one before gained, and so on for ever.

    Aitken's extrapolation (1926) of the thirds' medians, with a somewhat smaller share than was seen: where a growth
    that slows down will end is underestimated more easily than it is overestimated.
    """
    third = len(values) // 3
    parts = (values[:third], values[third:-third], values[-third:])
    first, second = (later - earlier for earlier, later in pairwise(median(part) for part in parts))
    if first <= 0:
        return float("inf")
    share = max(0.0, min(1.0, second / first) - SLOWING_RATIO)
    return float(median(parts[-1])) + max(0.0, second) * share / (1 - share)
