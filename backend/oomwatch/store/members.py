"""The servers that share the database: who is alive, by the clock of the database."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, select

from oomwatch.store.rows import put
from oomwatch.store.schema import members

FORGET_SECONDS = 86_400.0  # one that was killed says no farewell, and its name may never come again
_UNIX_EPOCH_JULIAN_DAY = 2_440_587.5
_DAY_SECONDS = 86_400.0


class Member(NamedTuple):
    """A server. `started_at` is by its own clock; for how long nothing was seen of it, by that of the database."""

    replica: str
    address: str
    started_at: float
    seen_seconds_ago: float


def beat(connection: Connection, replica: str, address: str, started_at: float) -> None:
    """Note that a server is alive, and forget those that have been gone for a day."""
    now = float(connection.scalar(select(_clock(connection))) or 0.0)
    row = {"replica": replica, "address": address, "started_at": started_at, "seen_at": now}
    put(connection, members, [row])
    connection.execute(delete(members).where(members.c.seen_at < now - FORGET_SECONDS))


def leave(connection: Connection, replica: str) -> None:
    """Forget a server that stops."""
    connection.execute(delete(members).where(members.c.replica == replica))


def known(connection: Connection) -> list[Member]:
    """Every server, by name."""
    ago = _clock(connection) - members.c.seen_at
    query = select(members.c.replica, members.c.address, members.c.started_at, ago.label("ago"))
    found = [Member(row.replica, row.address, row.started_at, float(row.ago)) for row in connection.execute(query)]
    return sorted(found)


def _clock(connection: Connection) -> ColumnElement[Any]:
    """Unix seconds, not those of the beginning of the transaction."""
    if connection.dialect.name == "postgresql":
        return func.extract("epoch", func.clock_timestamp())
    return (func.julianday("now") - _UNIX_EPOCH_JULIAN_DAY) * _DAY_SECONDS
