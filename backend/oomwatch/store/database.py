"""A connection to the database: opened, brought to the schema of this version, and its errors put into sentences."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from oomwatch.store import sqlite
from oomwatch.store.address import file_of_url, parsed, place_of
from oomwatch.store.errors import DATABASE_ERRORS, StoreError, explained
from oomwatch.store.migrate import migrate
from oomwatch.store.patience import Patience
from oomwatch.store.soundness import refuse_what_is_none_of_ours

# PostgreSQL's words for: another transaction came in between (serialization_failure, deadlock_detected), or made the
# same new row (unique_violation; whoever looks again finds it).
_IN_BETWEEN = frozenset({"40001", "40P01", "23505"})
ATTEMPTS = 8
PAUSE_SECONDS = 0.02  # doubled each time, and by chance up to twice as long: two that collide do not collide again
P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """An engine that names its place in every error. Reads may run in other threads beside the one that writes."""

    def __init__(
        self,
        engine: Engine,
        place: str,
        *,
        reading: Mapping[str, Any],
        writing: Mapping[str, Any],
        patience: Patience | None = None,
    ) -> None:
        self.place = place
        self._engine = engine
        self._file = file_of_url(engine.url)
        self._identity: tuple[int, int] | None = None  # until remember_file
        self._reader = engine.execution_options(**reading)
        self._writer = engine.execution_options(**writing)
        self._patience = patience

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view. Raises StoreError."""
        self._refuse_if_lost()
        try:
            with self._reader.connect() as connection:
                yield connection
        except DATABASE_ERRORS as error:
            raise explained(error, self.place) from error

    def write(self, act: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One transaction: what `act` did is committed when it returns, and undone when it raises. Raises StoreError.

        Where another server wrote the same rows in between, `act` is made again from the beginning, so it must not do
        anything that is not undone.
        """
        self._refuse_if_lost()
        try:
            result = self._tried(lambda connection: act(connection, *args, **kwargs))
            self._refuse_if_lost()
        except DATABASE_ERRORS as error:
            raise explained(error, self.place) from error
        return result

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """As write(), without another attempt: what another server wrote in between is an error."""
        self._refuse_if_lost()
        try:
            with self._writer.begin() as connection:
                yield connection
            self._refuse_if_lost()
        except DATABASE_ERRORS as error:
            raise explained(error, self.place) from error

    def _tried(self, act: Callable[[Connection], T]) -> T:
        for attempt in range(1, ATTEMPTS):
            try:
                with self._writer.begin() as connection:
                    return act(connection)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _IN_BETWEEN:
                    raise
            time.sleep(PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        with self._writer.begin() as connection:
            return act(connection)

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
        if self._patience is not None:
            self._patience.close()


def open_database(address: str) -> Database:
    """Open the database at a path or a SQLAlchemy URL, creating or migrating its tables. Raises StoreError."""
    url = parsed(address)
    place = place_of(url)
    try:
        database = _on_postgres(url, place) if url.get_backend_name() == "postgresql" else _on_sqlite(url, place)
    except DATABASE_ERRORS as error:
        raise explained(error, place) from error
    try:
        database.remember_file()
    except BaseException:
        database.close()
        raise
    return database


def hurried_database(address: str) -> Database:
    """On a PostgreSQL that is migrated already, with little patience; connects to nothing yet. Raises StoreError."""
    url = parsed(address)
    place = place_of(url)
    postgres = postgres_at(url, place)
    engine, patience = postgres.postgres_engine(url, postgres.IMPATIENT)
    return Database(engine, place, reading=postgres.READING, writing=postgres.WRITING, patience=patience)


def why_unreachable(address: str) -> str | None:
    """A sentence where a PostgreSQL cannot be asked now; None where it can. Blocks for some seconds at most.

    Raises StoreError for what time does not mend.
    """
    database = hurried_database(address)
    try:
        with database.reading():
            return None
    except StoreError as error:
        if not error.may_pass:
            raise
        return str(error)
    finally:
        database.close()


def postgres_at(url: URL, place: str) -> Any:  # noqa: ANN401 - as with_driver
    """The module `postgres`, for what several servers share. Raises StoreError where the database is another."""
    if url.get_backend_name() != "postgresql":
        raise StoreError(f"database {place}: only PostgreSQL can be shared by several servers")
    return with_driver(place)


def _on_sqlite(url: URL, place: str) -> Database:
    file = file_of_url(url)
    if file is not None and file.exists():
        refuse_what_is_none_of_ours(file)
    engine = sqlite.sqlite_engine(url)
    try:
        with engine.execution_options(**sqlite.WRITING).begin() as connection:
            migrate(connection, place)
    except BaseException:
        engine.dispose()
        raise
    return Database(engine, place, reading={}, writing=sqlite.WRITING)


def _on_postgres(url: URL, place: str) -> Database:
    postgres = with_driver(place)
    migrator = postgres.postgres_engine(url, postgres.UNHURRIED, pooled=False)
    try:
        with migrator.engine.execution_options(**postgres.MIGRATING).begin() as connection:
            migrate(connection, place)
    finally:
        migrator.patience.close()
    engine, patience = postgres.postgres_engine(url)
    return Database(engine, place, reading=postgres.READING, writing=postgres.WRITING, patience=patience)


def with_driver(place: str) -> Any:  # noqa: ANN401 - the module postgres, which imports what may not be there
    """The module `postgres`. Raises StoreError where its driver is not installed."""
    try:
        from oomwatch.store import postgres  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise StoreError(
            f"database {place}: PostgreSQL's driver is missing ({error}); pip install 'oomwatch[postgres]'"
        ) from error
    return postgres


def _identity(file: Path | None) -> tuple[int, int] | None:
    """What tells one file from another, whatever they are called; None where there is none."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found is not None else None
