"""PURE: readings of one GPU (or host), some seconds together, so that long times can be kept and shown.

    raw     every reading                     history_raw_keep
    10 s    least, greatest, mean, number     history_10s_keep
    60 s    the same                          history_1m_keep

A tier is columns like the readings it was made of, with the first millisecond of each bucket for its time:

    values[0]               how many readings there were
    values[1 + 4 * f ...]   of field f: least; greatest less least; where between them the mean lies, in 255ths; how
                            many of the readings lacked it

so that a figure that stood still costs nothing. Least and greatest are exactly those of the readings; a mean is right
to 0.2 % of what lies between them. A bucket in which nothing was known of a field is missing there.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import mul, sub
from typing import NamedTuple, TypeAlias

from oomwatch.store.columns import Columns, Typecode

NAN, INFINITE = float("nan"), float("inf")
HOUR_MS = 3_600_000
MEAN_PARTS = 255  # one byte
_OF_FIELD = 4
TYPECODE: Typecode = "d"  # what lies between two float32 may be no float32


class Tier(NamedTuple):
    """`span_ms` is how much of time one blob covers: as much as makes some hundred buckets, a multiple of an hour."""

    width_ms: int
    span_ms: int


FINE, COARSE = Tier(10_000, HOUR_MS), Tier(60_000, 6 * HOUR_MS)
TIERS = (FINE, COARSE)
RAW_MS = 0  # the width of what is no tier

Point = tuple[float, float, float, int]  # least, greatest, mean, and of how many
_NOTHING: Point = (INFINITE, -INFINITE, 0.0, 0)


class Rolled(NamedTuple):
    """One field of a tier. Of a bucket without it the first three are NaN and the number is 0."""

    at_ms: Sequence[int]
    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]
    counts: Sequence[int]


def rolled(readings: Columns, width_ms: int) -> Columns:
    """Readings, in the order of their time, as a tier."""
    (tier,) = rolled_in_turn(readings, [width_ms])
    return tier


def rolled_in_turn(readings: Columns, widths_ms: Sequence[int]) -> Iterator[Columns]:
    """The same as several tiers, the narrowest first, each of whose buckets are some of the one before."""
    starts, cuts = _buckets(readings.at_ms, widths_ms[0])
    rows = [cut.stop - cut.start for cut in cuts]
    fields = [_of_readings(column, cuts) for column in readings.values]
    yield _tier(starts, rows, fields)
    for width_ms in widths_ms[1:]:
        starts, cuts = _buckets(starts, width_ms)
        rows = [sum(rows[cut]) for cut in cuts]
        fields = [_together(field, cuts) for field in fields]
        yield _tier(starts, rows, fields)


def joined(old: Columns, new: Columns) -> Columns:
    """Both, where each was made of other readings. What is in the same bucket becomes one."""
    width = max(_fields(old), _fields(new))
    if old.at_ms[-1] < new.at_ms[0]:
        return _appended(old, new, 1 + _OF_FIELD * width)
    rows: dict[int, tuple[int, list[Point | None]]] = {}
    for part in (old, new):
        for at_ms, count, points in _rows(part, width):
            known = rows.get(at_ms)
            rows[at_ms] = (count, points) if known is None else _one(known, (count, points))
    return _from_rows(sorted(rows.items()), width)


def places_of(field: int) -> list[int]:
    """Where the columns of a field stand, the number of readings first."""
    return [0, *range(1 + _OF_FIELD * field, 1 + _OF_FIELD * (field + 1))]


def field_of(columns: Columns) -> Rolled | None:
    """A field whose columns were read by places_of; None: the blob has none of it."""
    if len(columns.values) <= _OF_FIELD:
        return None
    rows, low, spread, share, missing = columns.values
    high = [least + more for least, more in zip(low, spread, strict=True)]
    mean = [
        least + more * part / MEAN_PARTS if more else least
        for least, more, part in zip(low, spread, share, strict=True)
    ]
    count = [
        int(of - lacking) if lacking == lacking else 0  # noqa: PLR0124 - NaN is not itself
        for of, lacking in zip(rows, missing, strict=True)
    ]
    return Rolled(columns.at_ms, low, high, mean, count)


def rolled_field(columns: Columns, field: int) -> Rolled | None:
    """The same of all columns of a tier; None: it has none of this field."""
    if field >= _fields(columns):
        return None
    return field_of(Columns(columns.at_ms, tuple(columns.values[place] for place in places_of(field))))


def greatest(columns: Columns) -> Columns:
    """Columns as of readings: of every field the greatest, at the beginning of its bucket."""
    fields = [rolled_field(columns, field) for field in range(_fields(columns))]
    return Columns(columns.at_ms, tuple(array("f", one.high) for one in fields if one is not None))


def between(columns: Columns, start_ms: int, end_ms: int) -> Columns:
    """The buckets that begin from `start_ms` to before `end_ms`."""
    rows = slice(bisect_left(columns.at_ms, start_ms), bisect_left(columns.at_ms, end_ms))
    return Columns(columns.at_ms[rows], tuple(column[rows] for column in columns.values))


def _buckets(at_ms: Sequence[int], width_ms: int) -> tuple["array[int]", list[slice]]:
    """When each bucket that has rows begins, and which rows these are."""
    starts, cuts, place = array("q"), list[slice](), 0
    while place < len(at_ms):
        start = at_ms[place] // width_ms * width_ms
        after = bisect_left(at_ms, start + width_ms, place)
        starts.append(start)
        cuts.append(slice(place, after))
        place = after
    return starts, cuts


class _Points(NamedTuple):
    """A field of some buckets. Of one in which nothing is known, no number is less or greater than the first two."""

    lows: list[float]
    highs: list[float]
    totals: list[float]
    counts: list[int]


_Field: TypeAlias = _Points | float  # a number: that of every bucket, in which none is missing


def _of_readings(column: "array[float]", cuts: Sequence[slice]) -> _Field:
    if column.count(column[0]) == len(column):
        return column[0]
    values, total = column.tolist(), sum(column)
    if total == total:  # noqa: PLR0124 - NaN is not itself, and what it is added to is NaN
        parts = [values[cut] for cut in cuts]
        return _Points(*(list(map(of, parts)) for of in (min, max, sum, len)))  # type: ignore[arg-type]
    parts = [[value for value in values[cut] if value == value] for cut in cuts]  # noqa: PLR0124
    return _Points(
        [min(part, default=INFINITE) for part in parts],
        [max(part, default=-INFINITE) for part in parts],
        list(map(sum, parts)),
        list(map(len, parts)),
    )


def _together(points: _Field, cuts: Sequence[slice]) -> _Field:
    """The buckets within each cut as one."""
    if isinstance(points, float):
        return points
    lows, highs, totals, counts = points
    return _Points(
        [min(lows[cut]) for cut in cuts],
        [max(highs[cut]) for cut in cuts],
        [sum(totals[cut]) for cut in cuts],
        [sum(counts[cut]) for cut in cuts],
    )


def _tier(starts: "array[int]", rows: Sequence[int], fields: Iterable[_Field]) -> Columns:
    columns = [part for field in fields for part in _as_columns(field, rows)]
    return Columns(starts, (array(TYPECODE, rows), *columns))


def _as_columns(points: _Field, rows: Sequence[int]) -> "list[array[float]]":
    if isinstance(points, float):
        return [array(TYPECODE, [number]) * len(rows) for number in (points, 0, 0, 0)]
    spreads = list(map(sub, points.highs, points.lows))
    shares = map(_share, points.lows, spreads, points.totals, points.counts)
    columns = [points.lows, spreads, list(shares), list(map(sub, rows, points.counts))]
    if 0 in points.counts:
        columns = [
            [number if count else NAN for number, count in zip(column, points.counts, strict=True)]
            for column in columns
        ]
    return [array(TYPECODE, column) for column in columns]


def _share(low: float, spread: float, total: float, count: int) -> int:
    """Where the mean lies between the least and the greatest."""
    return round((total / count - low) / spread * MEAN_PARTS) if spread > 0 else 0


# ---------------------------------------------------------------- joining


def _fields(columns: Columns) -> int:
    return (len(columns.values) - 1) // _OF_FIELD


def _appended(old: Columns, new: Columns, width: int) -> Columns:
    padded = [
        (*part.values, *([array(TYPECODE, [NAN]) * len(part.at_ms)] * (width - len(part.values))))
        for part in (old, new)
    ]
    return Columns(old.at_ms + new.at_ms, tuple(before + after for before, after in zip(*padded, strict=True)))


def _rows(part: Columns, width: int) -> Iterator[tuple[int, int, list[Point | None]]]:
    fields = [rolled_field(part, field) for field in range(_fields(part))]
    for row, at_ms in enumerate(part.at_ms):
        points = [None if one is None else _point(one, row) for one in fields]
        yield at_ms, int(part.values[0][row]), points + [None] * (width - len(points))


def _point(of: Rolled, row: int) -> Point | None:
    return (of.low[row], of.high[row], of.mean[row], of.counts[row]) if of.counts[row] else None


def _one(old: tuple[int, list[Point | None]], new: tuple[int, list[Point | None]]) -> tuple[int, list[Point | None]]:
    return old[0] + new[0], [_both(*pair) for pair in zip(old[1], new[1], strict=True)]


def _both(one: Point | None, other: Point | None) -> Point | None:
    if one is None or other is None:
        return one or other
    count = one[3] + other[3]
    mean = (one[2] * one[3] + other[2] * other[3]) / count
    return min(one[0], other[0]), max(one[1], other[1]), mean, count


def _from_rows(rows: Sequence[tuple[int, tuple[int, list[Point | None]]]], width: int) -> Columns:
    fields = [_summed([points[field] or _NOTHING for _, (_, points) in rows]) for field in range(width)]
    return _tier(array("q", (at_ms for at_ms, _ in rows)), [count for _, (count, _) in rows], fields)


def _summed(points: Sequence[Point]) -> _Points:
    lows, highs, means, counts = map(list, zip(*points, strict=True))
    return _Points(lows, highs, list(map(mul, means, counts)), counts)
