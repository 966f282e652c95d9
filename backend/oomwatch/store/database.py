"""A connection to the database: opened, brought to the schema of this version, and its errors put into sentences."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import alembic.command
import alembic.config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.util import immutabledict

from oomwatch.store.errors import DATABASE_ERRORS, StoreError, explained

MIGRATIONS = Path(__file__).parent / "migrations"
CHECKPOINT_PAGES = 20_000  # 80 MiB of log: what SQLite does itself, should nobody call checkpoint()
BUSY_TIMEOUT_SECONDS = 5.0  # how long a writer waits for another process, a backup for example


class Database:
    """An engine that names its place in every error. Reads may run in other threads beside the one that writes."""

    def __init__(self, engine: Engine, place: str) -> None:
        self.place = place
        self._engine = engine
        self._file = _file_of(engine.url)
        self._identity: tuple[int, int] | None = None  # until remember_file
        # BEGIN IMMEDIATE: a transaction that reads before it writes must not find in the middle that it may not write.
        self._writer = engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view. Raises StoreError."""
        self._refuse_if_lost()
        try:
            with self._engine.connect() as connection:
                yield connection
        except DATABASE_ERRORS as error:
            raise explained(error, self.place) from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: committed when the block ends, undone when it raises. Raises StoreError."""
        self._refuse_if_lost()
        try:
            with self._writer.begin() as connection:
                yield connection
            self._refuse_if_lost()
        except DATABASE_ERRORS as error:
            raise explained(error, self.place) from error

    def remember_file(self) -> None:
        """The file is there now, and is the one that every connection writes to."""
        self._identity = _identity(self._file)

    def lost(self) -> str | None:
        """What to do, where the file was deleted or another one was put in its place. SQLite itself goes on, unseen."""
        if self._identity is None or _identity(self._file) == self._identity:
            return None
        return (
            f"database {self.place}: the file was deleted or replaced while the server runs, and nothing more is "
            "stored; put it back, or restart the server, which then begins anew"
        )

    def _refuse_if_lost(self) -> None:
        lost = self.lost()
        if lost is not None:
            raise StoreError(lost)

    def checkpoint(self) -> None:
        """Sync what was committed to the disk and move it from the log into the file (SQLite). Raises StoreError.

        The writer does that by itself every so often, and then an alert waits for the disk, which can take seconds. In
        another thread nobody waits for it.
        """
        if self._engine.dialect.name == "sqlite":
            with self.reading() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def open_database(address: str) -> Database:
    """Open the database at a SQLAlchemy URL, creating or migrating its tables. Raises StoreError."""
    url = _parsed(address)
    place = _place(url)
    try:
        database = Database(_engine(url), place)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StoreError(f"database {place}: {error}; install the driver that the URL names") from error
    except DATABASE_ERRORS as error:
        raise explained(error, place) from error
    try:
        with database.writing() as connection:
            migrate(connection, place)
        database.remember_file()
    except BaseException:
        database.close()
        raise
    return database


def migrate(connection: Connection, place: str, revision: str = "head") -> None:
    """Bring the tables to a revision. Raises StoreError where a newer oomwatch wrote them."""
    config = alembic.config.Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise StoreError(
            f"database {place}: its schema {current} is newer than this oomwatch, which knows up to "
            f"{scripts.get_current_head()}; install the newer oomwatch again, or name another database"
        )
    if current != scripts.get_current_head():
        alembic.command.upgrade(config, revision)


def _parsed(address: str) -> URL:
    try:
        return make_url(address)
    except ArgumentError as error:
        raise StoreError(
            f'"{address}" is no database URL; write for example sqlite:////var/lib/oomwatch/oomwatch.db'
        ) from error


def _place(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or "in memory"
    return url.render_as_string(hide_password=True)


def file_of(address: str) -> Path | None:
    """The file of a SQLAlchemy URL; None for another database than SQLite, and for one in memory. Raises StoreError."""
    return _file_of(_parsed(address))


def _file_of(url: URL) -> Path | None:
    """SQLite's file; None for another database, and for one in memory."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:") or "uri" in url.query:
        return None
    return Path(str(url.database))


def _identity(file: Path | None) -> tuple[int, int] | None:
    """What tells one file from another, whatever they are called; None where there is none."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found is not None else None


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    arguments: dict[str, Any] = {"check_same_thread": False}
    if "timeout" not in url.query:
        arguments["timeout"] = BUSY_TIMEOUT_SECONDS
    if url.database in (None, "", ":memory:"):
        engine = create_engine(url, connect_args=arguments, poolclass=StaticPool)
    else:
        Path(str(url.database)).absolute().parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, connect_args=arguments)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: it leaves reads and DDL outside
    # WAL with NORMAL: a commit survives the death of the process. A power cut may undo the last commits (the file stays
    # whole): those since the last checkpoint.
    connection.execute("PRAGMA journal_mode = WAL").close()
    connection.execute("PRAGMA synchronous = NORMAL").close()
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").close()
    connection.execute("PRAGMA foreign_keys = ON").close()


def _begin_sqlite(connection: Connection) -> None:
    options: immutabledict[str, Any] = connection.get_execution_options()
    connection.exec_driver_sql(options.get("sqlite_begin", "BEGIN"))
