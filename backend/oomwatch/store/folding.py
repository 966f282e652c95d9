"""Readings made part of the tiers in the database (tiers.py)."""

import logging
from collections.abc import Iterator

from sqlalchemy import Connection, and_, bindparam, insert, select, update

from oomwatch.store import columns, tiers
from oomwatch.store.columns import Columns, ColumnsError
from oomwatch.store.schema import tiers as table
from oomwatch.store.tiers import TIERS, Tier

logger = logging.getLogger(__name__)


def add(connection: Connection, subject: int, readings: Columns) -> None:
    """Readings that are in no tier yet, in the order of their time."""
    parts = tiers.rolled_in_turn(readings, [tier.width_ms for tier in TIERS])
    for tier, whole in zip(TIERS, parts, strict=True):
        for start_ms, part in _by_span(whole, tier):
            _join(connection, subject, tier, start_ms, part)


def unpacked(row_first_ms: int, blob: bytes, only: list[int] | None = None) -> Columns:
    """The columns of a row of the table. Raises ColumnsError."""
    return columns.unpack(row_first_ms, blob, only, tiers.TYPECODE)


def _readable(subject: int, start_ms: int, first_ms: int, blob: bytes) -> Columns | None:
    """A row that is damaged gives way to what is new: nobody can read it, and it must not keep all others waiting."""
    try:
        return unpacked(first_ms, blob)
    except ColumnsError as error:
        logger.warning(
            "the tier of subject %d from %d ms on cannot be read, and is begun anew: %s", subject, start_ms, error
        )
        return None


def _by_span(part: Columns, tier: Tier) -> Iterator[tuple[int, Columns]]:
    begin_ms = part.at_ms[0] // tier.span_ms * tier.span_ms
    for start_ms in range(begin_ms, part.at_ms[-1] + 1, tier.span_ms):
        within = tiers.between(part, start_ms, start_ms + tier.span_ms)
        if within.at_ms:
            yield start_ms, within


# Made once: to make a statement costs more than it does.
_MINE = and_(
    table.c.subject == bindparam("of_subject"),
    table.c.width_ms == bindparam("of_width_ms"),
    table.c.start_ms == bindparam("from_ms"),
)
_READ = select(table.c.first_ms, table.c.blob).where(_MINE).with_for_update()
_INSERT, _CHANGE = insert(table), update(table).where(_MINE)


def _join(connection: Connection, subject: int, tier: Tier, start_ms: int, new: Columns) -> None:
    mine = {"of_subject": subject, "of_width_ms": tier.width_ms, "from_ms": start_ms}
    old = connection.execute(_READ, mine).first()
    if old is None:
        row = {"subject": subject, "width_ms": tier.width_ms, "start_ms": start_ms}
        connection.execute(_INSERT, row | _content(new))
        return
    before = _readable(subject, start_ms, old.first_ms, old.blob)
    whole = new if before is None else tiers.joined(before, new)
    connection.execute(_CHANGE, mine | _content(whole))


def _content(whole: Columns) -> dict[str, int | bytes]:
    return {"first_ms": whole.at_ms[0], "end_ms": whole.at_ms[-1], "blob": columns.pack_tight(whole)}
