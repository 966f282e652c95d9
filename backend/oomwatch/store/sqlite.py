"""An engine on a SQLite file, or on one in memory."""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.util import immutabledict

# Of a new file. Rows of readings take some KiB, and SQLite gives the end of each a page of its own: of 4 KiB, its own
# choice, a quarter stays empty, of 1 KiB 2 %, and what a reading of each GPU writes is less too.
PAGE_BYTES = 1024
CHECKPOINT_PAGES = 80_000  # 80 MiB of log: what SQLite does itself, should nobody call checkpoint()
BUSY_TIMEOUT_SECONDS = 5.0  # how long a writer waits for another process, a backup for example
# BEGIN IMMEDIATE: a transaction that reads before it writes must not find in the middle that it may not write.
WRITING: dict[str, Any] = {"sqlite_begin": "BEGIN IMMEDIATE"}


def sqlite_engine(url: URL) -> Engine:
    """Makes the folder of the file where there is none. Raises OSError."""
    arguments: dict[str, Any] = {"check_same_thread": False}
    if "timeout" not in url.query:
        arguments["timeout"] = BUSY_TIMEOUT_SECONDS
    if url.database in (None, "", ":memory:"):
        engine = create_engine(url, connect_args=arguments, poolclass=StaticPool)
    else:
        Path(str(url.database)).absolute().parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, connect_args=arguments)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: it leaves reads and DDL outside
    # WAL with NORMAL: a commit survives the death of the process. A power cut may undo the last commits (the file stays
    # whole): those since the last checkpoint.
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}").close()
    connection.execute("PRAGMA journal_mode = WAL").close()
    connection.execute("PRAGMA synchronous = NORMAL").close()
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").close()
    connection.execute("PRAGMA foreign_keys = ON").close()


def _begin(connection: Connection) -> None:
    options: immutabledict[str, Any] = connection.get_execution_options()
    connection.exec_driver_sql(options.get("sqlite_begin", "BEGIN"))
