"""What was told becomes small, and what is old goes: a helping at a time, each a transaction that leaves all readable.

    told -> a chunk a flush -> after ten minutes one -> an hour later one, tight, and part of the tiers -> gone

Late readings open their ten minutes and their hour again, whether or not the readings that were there then are still
kept: what is folded into a tier is added to what it holds.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, delete, insert, or_, select, update

from oomwatch.store import columns, folding
from oomwatch.store.chunks import PIECE_MS, loose, open_hours, tight
from oomwatch.store.columns import Columns, ColumnsError
from oomwatch.store.rows import pieces
from oomwatch.store.schema import chunks, loose_hours, loose_pieces, subjects, tiers
from oomwatch.store.tiers import COARSE, FINE, HOUR_MS

# An hour is merged once no late message is to be expected: an agent keeps unsent messages for 10 minutes. One that
# comes all the same opens the hour again.
GRACE_MS = 900_000
PIECE_GRACE_MS = 60_000  # the flush, and the way here
SUBJECTS_MAX = 100  # of one helping; of most that are gone, there is nothing to merge

_Merge: TypeAlias = Callable[[Connection, int, int], None]
logger = logging.getLogger(__name__)


class Keep(NamedTuple):
    """For how many seconds readings are kept: each, those of ten seconds together, those of a minute."""

    raw_seconds: float
    fine_seconds: float
    coarse_seconds: float

    @classmethod
    def all_for(cls, seconds: float) -> "Keep":
        return cls(seconds, seconds, seconds)


class _Loose(NamedTuple):
    table: Table
    key: str
    length_ms: int
    grace_ms: int


_PIECES = _Loose(loose_pieces, "piece_ms", PIECE_MS, PIECE_GRACE_MS)
_HOURS = _Loose(loose_hours, "hour_ms", HOUR_MS, GRACE_MS)


def compact(connection: Connection, now: float, for_seconds: float) -> bool:
    """Merge the chunks of some subjects, of the oldest time that is over. True: there is more to do.

    It ends with the subject during which so many seconds have passed, so that it takes as long on any machine.
    """
    now_ms, until = round(now * 1000), time.monotonic() + for_seconds
    return _some(connection, _PIECES, now_ms, until, _merge_piece) or _some(
        connection, _HOURS, now_ms, until, _fold_hour
    )


def _some(connection: Connection, what: _Loose, now_ms: int, until: float, merge: _Merge) -> bool:
    key = what.table.c[what.key]
    latest = now_ms - what.length_ms - what.grace_ms
    oldest = connection.execute(select(what.table).where(key <= latest).order_by(key).limit(1)).first()
    if oldest is None:
        return False
    start_ms, next_subject = oldest
    todo = select(subjects.c.id).where(subjects.c.id >= next_subject).order_by(subjects.c.id)
    ids = connection.scalars(todo.limit(SUBJECTS_MAX)).all()
    done = _done(connection, ids, start_ms, until, merge)
    if len(ids) < SUBJECTS_MAX and done == len(ids):
        connection.execute(delete(what.table).where(key == start_ms))
    else:
        connection.execute(update(what.table).where(key == start_ms).values(next_subject=ids[done - 1] + 1))
    return True


def _done(connection: Connection, ids: Sequence[int], start_ms: int, until: float, merge: _Merge) -> int:
    """How many of them were merged when the time was over."""
    for number, subject in enumerate(ids, start=1):
        merge(connection, subject, start_ms)
        if time.monotonic() >= until:
            return number
    return len(ids)


def _merge_piece(connection: Connection, subject: int, piece_ms: int) -> None:
    parts = _readable(connection, subject, piece_ms, PIECE_MS, chunks.c.folded.is_(False))
    if len(parts) > 1:
        _delete(connection, subject, [part.start_ms for part in parts])
        whole = columns.merged([part.content for part in parts])
        connection.execute(insert(chunks), loose(subject, whole)._asdict())


def _fold_hour(connection: Connection, subject: int, hour_ms: int) -> None:
    parts = _readable(connection, subject, hour_ms, HOUR_MS)
    fresh = [part.content for part in parts if not part.folded]
    if fresh:
        folding.add(connection, subject, columns.merged(fresh))
        _delete(connection, subject, [part.start_ms for part in parts])
        whole = columns.merged([part.content for part in parts])
        connection.execute(insert(chunks), tight(subject, whole)._asdict())


class _Part(NamedTuple):
    start_ms: int
    folded: bool
    content: Columns


def _readable(
    connection: Connection, subject: int, start_ms: int, length_ms: int, *which: ColumnElement[bool]
) -> list[_Part]:
    """The chunks that begin within that time. One that is damaged is left where it is, until it is old enough to go."""
    begun = chunks.c.start_ms.between(start_ms, start_ms + length_ms - 1)
    query = select(chunks.c.start_ms, chunks.c.folded, chunks.c.blob).where(chunks.c.subject == subject, begun, *which)
    found = []
    for row in connection.execute(query.with_for_update()):
        content = _content(subject, row.start_ms, row.blob)
        if content is not None:
            found.append(_Part(row.start_ms, row.folded, content))
    return found


def _content(subject: int, start_ms: int, blob: bytes) -> Columns | None:
    try:
        return columns.unpack(start_ms, blob)
    except ColumnsError as error:
        logger.warning("the readings of subject %d from %d ms on cannot be read: %s", subject, start_ms, error)
        return None


def _delete(connection: Connection, subject: int, starts_ms: Sequence[int]) -> None:
    """These, and not what another server has told since."""
    for some in pieces(starts_ms):
        connection.execute(delete(chunks).where(chunks.c.subject == subject, chunks.c.start_ms.in_(some)))


# ---------------------------------------------------------------- forgetting


def prune(connection: Connection, now: float, keep: Keep, horizon: float, at_most_rows: int) -> int:
    """Delete some of what is older than it is to be kept, or begins after `horizon`; returns how many at most.

    Readings that are in no tier yet stay until they are, unless they are too old for the tiers too.
    """
    raw_ms, fine_ms, coarse_ms = (_hour_of(now - seconds) for seconds in keep)
    after_ms = _hour_of(horizon) + HOUR_MS
    _forget_loose(connection, min(raw_ms, fine_ms), after_ms)
    old = or_(chunks.c.start_ms < min(raw_ms, fine_ms), and_(chunks.c.start_ms < raw_ms, chunks.c.folded))
    counts = [_delete_some(connection, chunks, which, at_most_rows) for which in (old, chunks.c.start_ms >= after_ms)]
    _take_up(connection, raw_ms, at_most_rows)
    for width_ms, before_ms in ((FINE.width_ms, fine_ms), (COARSE.width_ms, coarse_ms)):
        outside = or_(tiers.c.end_ms < before_ms, tiers.c.start_ms >= after_ms)
        counts.append(_delete_some(connection, tiers, and_(tiers.c.width_ms == width_ms, outside), at_most_rows))
    return sum(counts)


def _hour_of(moment: float) -> int:
    return round(moment * 1000) // HOUR_MS * HOUR_MS


def _forget_loose(connection: Connection, before_ms: int, after_ms: int) -> None:
    for what in (_PIECES, _HOURS):
        key = what.table.c[what.key]
        connection.execute(delete(what.table).where(or_(key < before_ms, key >= after_ms)))


def _take_up(connection: Connection, before_ms: int, at_most_rows: int) -> None:
    """Old readings that came while their hour was being merged: it is merged again."""
    missed = and_(chunks.c.start_ms < before_ms, chunks.c.folded.is_(False))
    found = connection.scalars(_of_subjects(chunks, missed).with_only_columns(chunks.c.start_ms).limit(at_most_rows))
    hours = {start_ms // HOUR_MS * HOUR_MS for start_ms in found}
    for some in pieces(sorted(hours)):
        known = set(connection.scalars(select(loose_hours.c.hour_ms).where(loose_hours.c.hour_ms.in_(some))))
        open_hours(connection, set(some) - known)


def _of_subjects(table: Table, which: ColumnElement[bool]) -> "Select[Any]":
    """Rows found by their subject, as they lie: the table need not be searched from end to end."""
    return select(table.c.subject, table.c.start_ms).join(subjects, and_(table.c.subject == subjects.c.id, which))


def _delete_some(connection: Connection, table: Table, which: ColumnElement[bool], at_most_rows: int) -> int:
    """Delete rows, of each subject its earliest first; returns how many."""
    found = connection.execute(_of_subjects(table, which).limit(at_most_rows)).all()
    for subject, start_ms in _last(found).items():
        connection.execute(delete(table).where(table.c.subject == subject, which, table.c.start_ms <= start_ms))
    return len(found)


def _last(found: "Sequence[Row[Any]]") -> dict[int, int]:
    last: dict[int, int] = {}
    for row in found:
        last[row.subject] = max(row.start_ms, last.get(row.subject, row.start_ms))
    return last
