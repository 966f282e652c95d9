"""Locks that several servers on one PostgreSQL share. SQLite has one writer at a time, and needs none of them.

They are PostgreSQL's advisory locks: two numbers, the first of which is ours among all that use the same database.
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

OURS = 0x6F6F6D77  # "oomw"


class Key(NamedTuple):
    """What a lock is for."""

    number: int


MIGRATION = Key(1)
APPENDING = Key(2)  # of transitions: they become visible in the order of their seq
LEADER = Key(3)
SERVING = Key(4)  # a server alone has it for itself, those that act as one share it
_TAKE = text("SELECT pg_advisory_xact_lock(:ours, :number)")


def lock(connection: Connection, key: Key) -> None:
    """Wait for a lock, and hold it until the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(_TAKE, {"ours": OURS, "number": key.number})
