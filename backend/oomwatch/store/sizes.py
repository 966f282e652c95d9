"""How much the database holds, and how much of it is history of which fineness."""

from typing import Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, func, select, text

from oomwatch.store.schema import chunks, tiers
from oomwatch.store.tiers import COARSE, FINE

Kept: TypeAlias = Literal["raw", "10s", "1m"]
WIDTHS_MS: dict[Kept, int] = {"10s": FINE.width_ms, "1m": COARSE.width_ms}
KEPT: tuple[Kept, ...] = ("raw", "10s", "1m")


class HistorySize(Struct, frozen=True, kw_only=True):
    """Readings of one fineness. Bytes are those of the blobs alone."""

    kept: Kept
    chunks: int
    bytes: int
    oldest_at: float | None  # Unix seconds; None: there are none
    newest_at: float | None


class Sizes(Struct, frozen=True, kw_only=True):
    """`used_bytes` is what is left of the database without the room that deleted rows left; None: not known."""

    database_bytes: int | None
    used_bytes: int | None
    history: tuple[HistorySize, ...]


def sizes(connection: Connection) -> Sizes:
    """Reads every row's head once: not to be asked for every second."""
    database, used = _database(connection)
    measured = tuple(_history(connection, kept) for kept in KEPT)
    return Sizes(database_bytes=database, used_bytes=used, history=measured)


def _database(connection: Connection) -> tuple[int | None, int | None]:
    if connection.dialect.name == "sqlite":
        page, count, free = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_size", "page_count", "freelist_count")
        )
        return page * count, page * (count - free)
    if connection.dialect.name == "postgresql":
        size = int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
        return size, size
    return None, None


def _history(connection: Connection, kept: Kept) -> HistorySize:
    table, first, which = (
        (chunks, chunks.c.start_ms, None) if kept == "raw" else (tiers, tiers.c.first_ms, _of_width(WIDTHS_MS[kept]))
    )
    query = select(
        func.count(), func.coalesce(func.sum(func.length(table.c.blob)), 0), func.min(first), func.max(table.c.end_ms)
    )
    count, size, oldest, newest = connection.execute(query if which is None else query.where(which)).one()
    return HistorySize(
        kept=kept,
        chunks=int(count),
        bytes=int(size),
        oldest_at=None if oldest is None else oldest / 1000,
        newest_at=None if newest is None else newest / 1000,
    )


def _of_width(width_ms: int) -> ColumnElement[bool]:
    return tiers.c.width_ms == width_ms
