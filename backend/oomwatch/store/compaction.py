"""What was told becomes small, and what is old goes: a helping at a time, each a transaction that leaves all readable.

    told -> a chunk a flush -> after ten minutes one -> an hour later one, tight, and part of the tiers -> gone

Late readings open their ten minutes and their hour again, whether or not the readings that were there then are still
kept: what is folded into a tier is added to what it holds.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)

from oomwatch.store import columns, folding
from oomwatch.store.chunks import PIECE_MS, Chunk, loose, open_hours, tight
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
    found = _found(connection, _LOOSE_ONES, subject, piece_ms, PIECE_MS)
    if len(found.parts) > 1:
        whole = columns.merged([part.content for part in found.parts])
        _replace(connection, _LOOSE_ONES, found, loose(subject, whole))


def _fold_hour(connection: Connection, subject: int, hour_ms: int) -> None:
    found = _found(connection, _ALL, subject, hour_ms, HOUR_MS)
    fresh, folded = ([part.content for part in found.parts if part.folded == so] for so in (False, True))
    if fresh:
        told = columns.merged(fresh)
        folding.add(connection, subject, told)
        _replace(connection, _ALL, found, tight(subject, columns.merged([told, *folded])))


class _Chunks(NamedTuple):
    """How chunks that begin within some time are read and deleted. Made once: to make a statement costs as much."""

    read: "Select[Any]"
    delete: Delete


def _chunks(*which: ColumnElement[bool]) -> _Chunks:
    begun = chunks.c.start_ms.between(bindparam("first_ms"), bindparam("last_ms"))
    mine = and_(chunks.c.subject == bindparam("of_subject"), begun, *which)
    read = select(chunks.c.start_ms, chunks.c.folded, chunks.c.blob).where(mine).order_by(chunks.c.start_ms)
    return _Chunks(read.with_for_update(), delete(chunks).where(mine))


_ALL, _LOOSE_ONES = _chunks(), _chunks(chunks.c.folded.is_(False))
_INSERT = insert(chunks)


class _Part(NamedTuple):
    folded: bool
    content: Columns


class _Found(NamedTuple):
    """What can be read within some time, and when that begins which cannot."""

    within: dict[str, int]
    parts: list[_Part]
    damaged_ms: list[int]


def _found(connection: Connection, which: _Chunks, subject: int, start_ms: int, length_ms: int) -> _Found:
    within = {"of_subject": subject, "first_ms": start_ms, "last_ms": start_ms + length_ms - 1}
    found = _Found(within, [], [])
    for begin_ms, folded, blob in connection.execute(which.read, within):
        content = _content(subject, begin_ms, blob)
        if content is None:
            found.damaged_ms.append(begin_ms)
        else:
            found.parts.append(_Part(folded, content))
    return found


def _content(subject: int, start_ms: int, blob: bytes) -> Columns | None:
    try:
        return columns.unpack(start_ms, blob)
    except ColumnsError as error:
        logger.warning("the readings of subject %d from %d ms on cannot be read: %s", subject, start_ms, error)
        return None


def _replace(connection: Connection, which: _Chunks, found: _Found, whole: Chunk) -> None:
    """One chunk in place of those that were found. One that is damaged is left there, until it is old enough to go.

    What another server has told since is not seen by this transaction, and so not deleted.
    """
    those = which.delete
    if found.damaged_ms:
        those = those.where(chunks.c.start_ms.not_in(found.damaged_ms))
    connection.execute(those, found.within)
    connection.execute(_INSERT, whole._asdict())


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
