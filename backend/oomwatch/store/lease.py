"""A lease that one of several servers holds: an advisory lock of PostgreSQL, on a connection of its own.

The lock belongs to the connection. It goes when the holder lets go, when its process or its machine ends, and when
PostgreSQL does; a pooler between must give each client a connection for as long as it stays (PgBouncer: session mode).
"""

from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, text

from oomwatch.store.address import parsed, place_of
from oomwatch.store.database import postgres_at
from oomwatch.store.errors import DATABASE_ERRORS, explained
from oomwatch.store.locks import LEADER, OURS, Key

_TRY = text("SELECT pg_try_advisory_lock(:ours, :number)")
_TRY_SHARED = text("SELECT pg_try_advisory_lock_shared(:ours, :number)")
_LOCK = (
    "locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid::bigint = :ours AND objid::bigint = :number"
)
_HELD = text(f"SELECT count(*) FROM pg_locks WHERE {_LOCK} AND pid = pg_backend_pid()")  # noqa: S608 - a constant
_SESSION = text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
_HOLDER = f"pid = :pid AND backend_start = :backend_start AND pid IN (SELECT pid FROM pg_locks WHERE {_LOCK})"  # noqa: S608
_END = text(f"SELECT pg_terminate_backend(pid, 1500) FROM pg_stat_activity WHERE {_HOLDER}")  # noqa: S608 - a constant


class Lease:
    """Not for several threads at once. Every call ends within some seconds, whatever became of PostgreSQL."""

    def __init__(self, url: str, key: Key = LEADER, *, shared: bool = False) -> None:
        """For the database at a URL; connects to nothing yet. Raises StoreError for another than PostgreSQL.

        `shared`: others may have it at the same time, if they share it too.
        """
        self._try = _TRY_SHARED if shared else _TRY
        address = parsed(url)
        self._place = place_of(address)
        postgres = postgres_at(address, self._place)
        self._key = {"ours": OURS, "number": key.number}
        self._engine, self._patience = postgres.postgres_engine(address, postgres.IMPATIENT, pooled=False)
        self._connection: Connection | None = None
        self._session: dict[str, Any] = {}  # of the connection on which we had it last

    def try_take(self) -> bool:
        """Take it if nobody else has it; whether it is ours now. Raises StoreError where PostgreSQL cannot be asked."""
        if self.is_held():
            return True
        try:
            self._connection = self._engine.execution_options(isolation_level="AUTOCOMMIT").connect()
            taken = bool(self._connection.scalar(self._try, self._key))
            if not taken and self._end_our_last_session(self._connection):
                taken = bool(self._connection.scalar(self._try, self._key))
            if taken:
                self._session = dict(self._connection.execute(_SESSION).mappings().one())
        except DATABASE_ERRORS as error:
            self._drop()
            raise explained(error, self._place) from error
        if not taken:
            self._drop()
        return taken

    def _end_our_last_session(self, connection: Connection) -> bool:
        """Whether it was there: PostgreSQL may not have noticed that its line is dead, and keep the lock for it."""
        session, self._session = self._session, {}
        return bool(session and connection.scalar(_END, {**self._key, **session}))

    def is_held(self) -> bool:
        """Ask PostgreSQL whether it is still ours. Where it does not answer, it is not: somebody else may have it."""
        if self._connection is None:
            return False
        try:
            held = bool(self._connection.scalar(_HELD, self._key))
        except DATABASE_ERRORS:
            held = False
        if not held:
            self._drop()
        return held

    def release(self) -> None:
        """Let go of it, if it was ours."""
        self._session = {}
        self._drop()

    def close(self) -> None:
        """Let go of it for good."""
        self._drop()
        self._engine.dispose()
        self._patience.close()

    def _drop(self) -> None:
        """With its connection ends the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*DATABASE_ERRORS):
                connection.close()
