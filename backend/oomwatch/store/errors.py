"""What can go wrong with a database, as a sentence that names the place and the remedy."""

import sqlite3
from itertools import islice

from msgspec import DecodeError
from sqlalchemy.exc import SQLAlchemyError

from oomwatch.oserror import in_words
from oomwatch.store.columns import ColumnsError

# A full disk, a lost mount and a foreign file come out of SQLAlchemy, or out of the driver inside an event handler; a
# damaged row comes out of whoever reads what is in it.
DATABASE_ERRORS = (SQLAlchemyError, sqlite3.Error, OSError, DecodeError, ColumnsError)

FOLDER_REMEDY = "its folder must be one, and be writable for the user that runs this"
# Left: what SQLite says (its own words, sqlite3.c); right: what a person can do about it.
_REMEDIES = (
    ("is full", "its disk is full: free space there, have it on another one, or keep history for a shorter time"),
    ("is locked", "another process holds it: stop that one, or name another database"),
    ("malformed", "the file is damaged: restore a backup (docs/howto/backup.md), or see oomwatch begin-anew"),
    ("not a database", "the file is no SQLite database: name another file, or move it away"),
    ("unable to open", FOLDER_REMEDY),
    ("readonly", "make the file and its folder writable for the user that runs this"),
    ("disk I/O error", "the disk failed or is full: look at the kernel's log"),
    # PostgreSQL and its client library.
    ("Connection refused", "PostgreSQL does not listen there: start it, or correct host and port in the URL"),
    ("timeout expired", "the host does not answer: look at the network between, and at its firewall"),
    ("resolve host", "correct the host in the URL, or the name service"),
    ("authentication failed", "correct user and password in the URL"),
    ("no password supplied", "add the password to the URL, or to the file that PGPASSFILE names"),
    ("no pg_hba.conf entry", "allow this machine, user and database in PostgreSQL's pg_hba.conf"),
    ("does not exist", "create it: see docs/howto/postgresql.md"),
    ("permission denied", "make the user of the URL the owner of the database: ALTER DATABASE ... OWNER TO ..."),
    ("remaining connection slots", "raise PostgreSQL's max_connections, or run fewer programs on it"),
    ("too many clients", "raise PostgreSQL's max_connections, or run fewer programs on it"),
    ("read-only transaction", "it is a standby: name the primary, for example with target_session_attrs=read-write"),
    ("lock timeout", "another program holds the rows or the table: look at pg_stat_activity"),
    ("statement timeout", "PostgreSQL is overloaded: look at pg_stat_activity and at its disk"),
    ("could not extend", "PostgreSQL's disk is full: free space there, or keep history for a shorter time"),
    ("No space left", "PostgreSQL's disk is full: free space there, or keep history for a shorter time"),
    ("terminating connection", "PostgreSQL is being stopped, or someone ended the connection: it is tried again"),
    ("connection is lost", "PostgreSQL was stopped, or does not answer: it is tried again"),
    ("closed the connection", "PostgreSQL was stopped, or does not answer: it is tried again"),
    ("starting up", "PostgreSQL starts: it is tried again"),
    ("not yet accepting", "PostgreSQL starts: it is tried again"),
    ("in recovery mode", "PostgreSQL recovers from a crash: it is tried again"),
    ("shutting down", "PostgreSQL stops: it is tried again"),
    ("QueuePool limit", "every connection is in use: PostgreSQL is too slow, look at pg_stat_activity"),
)


# Of these, what passes by itself, or when somebody else starts or mends something.
_PASSING = (
    "Connection refused",
    "timeout",
    "resolve host",
    "No route to host",
    "unreachable",
    "remaining connection slots",
    "too many clients",
    "read-only transaction",
    "terminating connection",
    "connection is lost",
    "closed the connection",
    "starting up",
    "not yet accepting",
    "in recovery mode",
    "shutting down",
)


class StoreError(Exception):
    """The database could not do what was asked. Nothing of the request was stored; it may be tried again.

    `may_pass`: it lies with a PostgreSQL that is away, and may be there later.
    """

    may_pass = False


def explained(error: Exception, place: str) -> StoreError:
    """The StoreError for what SQLAlchemy, the driver or the file system raised at `place`."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    first = said[0] if said else type(error).__name__
    if isinstance(error, OSError):
        return StoreError(f"database {place}: {in_words(error)}; {FOLDER_REMEDY}")
    remedies = (remedy for sign, remedy in _REMEDIES if sign in first)
    found = StoreError("; ".join([f"database {place}: {first}", *islice(remedies, 1)]))
    found.may_pass = any(sign in first for sign in _PASSING)
    return found
