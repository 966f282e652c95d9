"""How large the database is, and what of it is history."""

from collections.abc import Iterator

from oomwatch.metrics.family import Family, Reading, Room, View

DATABASE = Family("oomwatch_database_bytes", "gauge", "Size of the database, measured every ten minutes.")
GROWTH = Family("oomwatch_database_growth_bytes_per_day", "gauge",
                "What the database has grown by, as of a day; from an hour after the start on.")  # fmt: skip
CHUNKS = Family("oomwatch_history_chunks", "gauge",
                "Rows of stored readings: each (raw), of ten seconds together (10s), of a minute (1m).",
                ("kept",), ("fineness",))  # fmt: skip
BYTES = Family("oomwatch_history_bytes", "gauge", "Bytes of these rows.", ("kept",), ("fineness",))


def _read(view: View) -> Iterator[Reading]:
    storage = view.storage
    history = storage.history if storage is not None else ()
    yield DATABASE.one(storage.database_bytes if storage is not None else None)
    yield GROWTH.one(storage.growth_bytes_per_day if storage is not None else None)
    yield CHUNKS.of([((one.kept,), one.chunks) for one in history])
    yield BYTES.of([((one.kept,), one.bytes) for one in history])


ROOM = Room((DATABASE, GROWTH, CHUNKS, BYTES), _read)
