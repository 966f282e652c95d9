"""What can go wrong with a database, as a sentence that names the place and the remedy."""

import sqlite3

from alembic.util.exc import CommandError
from msgspec import DecodeError
from sqlalchemy.exc import SQLAlchemyError

from oomwatch.store.columns import ColumnsError

# A full disk, a lost mount and a foreign file come out of SQLAlchemy, out of the driver inside an event handler, or out
# of Alembic; a damaged row comes out of whoever reads what is in it.
DATABASE_ERRORS = (SQLAlchemyError, sqlite3.Error, CommandError, OSError, DecodeError, ColumnsError)

FOLDER_REMEDY = "its folder must be one, and be writable for the user that runs the server"
# Left: what SQLite says (its own words, sqlite3.c); right: what a person can do about it.
_REMEDIES = (
    ("is full", "its disk is full: free space there, or keep history for a shorter time"),
    ("is locked", "another process holds it: stop the other server, or give this one its own database"),
    ("malformed", "the file is damaged: move it away to start anew, or restore a backup"),
    ("not a database", "the file is no SQLite database: name another file, or move it away"),
    ("unable to open", FOLDER_REMEDY),
    ("readonly", "make the file and its folder writable for the user that runs the server"),
    ("disk I/O error", "the disk failed or is full: look at the kernel's log"),
)


class StoreError(Exception):
    """The database could not do what was asked. Nothing of the request was stored; it may be tried again."""


def explained(error: Exception, place: str) -> StoreError:
    """The StoreError for what SQLAlchemy, the driver or the file system raised at `place`."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    first = said[0] if said else type(error).__name__
    if isinstance(error, OSError):
        return StoreError(f"database {place}: {first}; {FOLDER_REMEDY}")
    for sign, remedy in _REMEDIES:
        if sign in first:
            return StoreError(f"database {place}: {first}; {remedy}")
    return StoreError(f"database {place}: {first}")
