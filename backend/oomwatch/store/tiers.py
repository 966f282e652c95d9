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
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from oomwatch.store.columns import Columns, Typecode

NAN = float("nan")
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
_NOTHING = (NAN, NAN, NAN, NAN)


class Rolled(NamedTuple):
    """One field of a tier. Of a bucket without it the first three are NaN and the number is 0."""

    at_ms: Sequence[int]
    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]
    counts: Sequence[int]


def rolled(readings: Columns, width_ms: int) -> Columns:
    """Readings, in the order of their time, as a tier."""
    starts, bounds = _buckets(readings.at_ms, width_ms)
    rows = [after - before for before, after in pairwise(bounds)]
    fields = [_of_field(column, bounds) for column in readings.values]
    return Columns(starts, (array(TYPECODE, rows), *(part for field in fields for part in field)))


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


def _buckets(at_ms: Sequence[int], width_ms: int) -> tuple["array[int]", list[int]]:
    """When each bucket that has rows begins; the place of its first row, and behind the last the number of all."""
    starts, bounds, place = array("q"), [0], 0
    while place < len(at_ms):
        start = at_ms[place] // width_ms * width_ms
        place = bisect_left(at_ms, start + width_ms, place)
        starts.append(start)
        bounds.append(place)
    return starts, bounds


def _of_field(column: Sequence[float], bounds: Sequence[int]) -> "list[array[float]]":
    total = sum(column)
    whole = total == total  # noqa: PLR0124 - NaN is not itself
    if whole and min(column) == max(column):
        return _still(column[0], len(bounds) - 1)
    cut = (column[before:after] for before, after in pairwise(bounds))
    points = [_columns_of(part, len(part)) if whole else _with_gaps(part) for part in cut]
    return [array(TYPECODE, numbers) for numbers in zip(*points, strict=True)]


def _still(value: float, count: int) -> "list[array[float]]":
    return [array(TYPECODE, [number]) * count for number in (value, 0, 0, 0)]


def _with_gaps(part: Sequence[float]) -> tuple[float, float, float, float]:
    known = [value for value in part if value == value]  # noqa: PLR0124
    return _columns_of(known, len(part)) if known else _NOTHING


def _columns_of(known: Sequence[float], of: int) -> tuple[float, float, float, float]:
    low, high = min(known), max(known)
    return _as_columns((low, high, sum(known) / len(known), len(known)), of)


def _as_columns(point: Point, of: int) -> tuple[float, float, float, float]:
    low, high, mean, count = point
    share = round((mean - low) / (high - low) * MEAN_PARTS) if high > low else 0
    return low, high - low, share, of - count


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
    counts: array[float] = array(TYPECODE, (count for _, (count, _) in rows))
    fields = [
        [_NOTHING if points[field] is None else _as_columns(points[field], count) for _, (count, points) in rows]  # type: ignore[arg-type]
        for field in range(width)
    ]
    parts = [array(TYPECODE, column) for field in fields for column in zip(*field, strict=True)]
    return Columns(array("q", (at_ms for at_ms, _ in rows)), (counts, *parts))
