"""Which of what is kept answers a question: each hour by one width, and no reading twice.

An hour that was folded is in the tiers whole; readings that came since are in loose chunks beside them. So an hour is
its rows of one width, and its loose chunks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from oomwatch.store import columns, folding, tiers
from oomwatch.store.columns import Columns
from oomwatch.store.rows import pieces
from oomwatch.store.schema import chunks
from oomwatch.store.schema import tiers as tier_rows
from oomwatch.store.tiers import FINE, HOUR_MS, RAW_MS, TIERS, Rolled, Tier

Hours: TypeAlias = set[int]  # milliseconds of their beginnings
SUBJECTS_AT_ONCE = 100
ROWS_AT_ONCE = 100  # in memory, of some KiB each


def chosen(covered: Mapping[int, Hours], wanted_ms: int) -> dict[int, Hours]:
    """For each width the hours that it answers: the wanted one where it can, else the next finer, else a coarser."""
    finer = sorted((width for width in covered if width <= wanted_ms), reverse=True)
    coarser = sorted(width for width in covered if width > wanted_ms)
    taken: Hours = set()
    found: dict[int, Hours] = {}
    for width in (*finer, *coarser):
        found[width] = covered[width] - taken
        taken |= covered[width]
    return {width: hours for width, hours in found.items() if hours}


class Stretches(NamedTuple):
    """What answers for one subject from one time to another."""

    start_ms: int
    end_ms: int
    hours: dict[int, Hours]  # by width

    @property
    def width_ms(self) -> int:
        """The width of the coarsest."""
        return max(self.hours, default=RAW_MS)


def of(
    connection: Connection, subjects: Sequence[int], start_ms: int, end_ms: int, wanted_ms: int
) -> dict[int, Stretches]:
    """What to read of each subject where buckets of `wanted_ms` are enough (RAW_MS: every reading)."""
    covered: dict[int, dict[int, Hours]] = {subject: {} for subject in subjects}
    for some in pieces(subjects, SUBJECTS_AT_ONCE):
        for subject, width_ms, hours in _covered(connection, some, start_ms, end_ms):
            covered[subject].setdefault(width_ms, set()).update(hours)
    return {subject: Stretches(start_ms, end_ms, chosen(widths, wanted_ms)) for subject, widths in covered.items()}


def _covered(
    connection: Connection, subjects: list[int], start_ms: int, end_ms: int
) -> Iterator[tuple[int, int, Iterable[int]]]:
    query = select(chunks.c.subject, chunks.c.start_ms).where(
        chunks.c.subject.in_(subjects), _chunks_in(start_ms, end_ms), chunks.c.folded
    )
    for subject, begin_ms in connection.execute(query).all():
        yield subject, RAW_MS, [_floor(begin_ms, HOUR_MS)]
    row = tier_rows.c
    for tier in TIERS:
        query = select(row.subject, row.first_ms, row.end_ms).where(
            row.subject.in_(subjects), row.width_ms == tier.width_ms, _tier_in(tier, start_ms, end_ms)
        )
        for subject, *ends_ms in connection.execute(query).all():
            first_ms, last_ms = max(ends_ms[0], start_ms), min(ends_ms[1], end_ms)
            yield subject, tier.width_ms, range(_floor(first_ms, HOUR_MS), last_ms + 1, HOUR_MS)


def raw_parts(
    connection: Connection, found: Mapping[int, Stretches], only: Sequence[int] | None = None
) -> Iterator[tuple[int, Columns]]:
    """The readings themselves, chunk by chunk, of some fields: loose ones, and those of hours that no tier answers."""
    for some in pieces(found, SUBJECTS_AT_ONCE):
        start_ms, end_ms = found[some[0]].start_ms, found[some[0]].end_ms
        raw = [hour for subject in some for hour in found[subject].hours.get(RAW_MS, ())]
        needed: ColumnElement[bool] = chunks.c.folded.is_(False)
        if raw:
            needed = or_(needed, chunks.c.start_ms.between(min(raw), max(raw) + HOUR_MS - 1))
        query = select(chunks).where(chunks.c.subject.in_(some), _chunks_in(start_ms, end_ms), needed)
        in_order = query.order_by(chunks.c.subject, chunks.c.start_ms)
        for row in connection.execute(in_order).yield_per(ROWS_AT_ONCE):
            hours = found[row.subject].hours.get(RAW_MS, ())
            if not row.folded or _floor(row.start_ms, HOUR_MS) in hours:
                yield row.subject, columns.unpack(row.start_ms, row.blob, only)


def rolled_parts(
    connection: Connection, found: Mapping[int, Stretches], tier: Tier, only: list[int] | None = None
) -> Iterator[tuple[int, Columns]]:
    """Rows of a tier, cut to the hours that it answers."""
    answering = [subject for subject, one in found.items() if tier.width_ms in one.hours]
    row = tier_rows.c
    for some in pieces(answering, SUBJECTS_AT_ONCE):
        start_ms, end_ms = found[some[0]].start_ms, found[some[0]].end_ms
        query = select(tier_rows).where(
            row.subject.in_(some), row.width_ms == tier.width_ms, _tier_in(tier, start_ms, end_ms)
        )
        in_order = query.order_by(row.subject, row.start_ms)
        for found_row in connection.execute(in_order).yield_per(ROWS_AT_ONCE):
            part = folding.unpacked(found_row.first_ms, found_row.blob, only)
            hours = found[found_row.subject].hours[tier.width_ms]
            first_ms = _floor(start_ms, tier.width_ms)
            for begin_ms, until_ms in _runs(hours, found_row.start_ms, found_row.start_ms + tier.span_ms):
                yield found_row.subject, tiers.between(part, max(begin_ms, first_ms), min(until_ms, end_ms + 1))


def readings(
    connection: Connection, subjects: Sequence[int], start_ms: int, end_ms: int
) -> Iterator[tuple[int, Columns]]:
    """Every reading of every field; where they are gone, of each ten seconds the greatest."""
    found = of(connection, subjects, start_ms, end_ms, RAW_MS)
    yield from raw_parts(connection, found)
    for subject, part in rolled_parts(connection, found, FINE):
        if part.at_ms:
            yield subject, tiers.greatest(part)


def fields(
    connection: Connection, found: Mapping[int, Stretches], field: int
) -> Iterator[tuple[int, Columns | Rolled]]:
    """One field of each subject: the column of readings, or what a tier holds of it."""
    for subject, parts in groupby(raw_parts(connection, found, [field]), key=itemgetter(0)):
        having = [part for _, part in parts if part.values]
        if having:
            yield subject, columns.merged(having)
    for tier in TIERS:
        for subject, part in rolled_parts(connection, found, tier, tiers.places_of(field)):
            rolled = tiers.field_of(part)
            if rolled is not None:
                yield subject, rolled


def _runs(hours: Hours, start_ms: int, end_ms: int) -> list[tuple[int, int]]:
    """From when to when the hours within that time reach without a break."""
    found: list[tuple[int, int]] = []
    for hour_ms in sorted(hour for hour in hours if start_ms <= hour < end_ms):
        if found and found[-1][1] == hour_ms:
            found[-1] = found[-1][0], hour_ms + HOUR_MS
        else:
            found.append((hour_ms, hour_ms + HOUR_MS))
    return found


def _floor(at_ms: int, width_ms: int) -> int:
    return at_ms // width_ms * width_ms


def _chunks_in(start_ms: int, end_ms: int) -> ColumnElement[bool]:
    """A chunk never crosses an hour."""
    return and_(chunks.c.start_ms.between(_floor(start_ms, HOUR_MS), end_ms), chunks.c.end_ms >= start_ms)


def _tier_in(tier: Tier, start_ms: int, end_ms: int) -> ColumnElement[bool]:
    row = tier_rows.c
    return and_(
        row.start_ms.between(_floor(start_ms, tier.span_ms), end_ms), row.end_ms >= _floor(start_ms, tier.width_ms)
    )
