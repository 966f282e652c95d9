"""Whether SQLite's file is sound, looked at before a server writes to it, and what becomes of one that is not."""

import logging
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from oomwatch.oserror import in_words
from oomwatch.store.address import file_of
from oomwatch.store.errors import StoreError, explained
from oomwatch.store.schema import metadata

# Of a file that is larger than what can be read in that time the rest is believed: a server that does not start is
# worse. Where it lies in the kernel's cache, this is some GiB.
LOOK_SECONDS = 10.0
_STEPS = 10_000  # of SQLite's machine, between two looks at the clock: some milliseconds
LOOKED_AT_BYTES = 64 * 2**20
TABLES_MIN = 3
_SQLITE_BEGINS = b"SQLite format 3\0"
_NO_DATABASE = "file is not a database"  # SQLite's words for it
_BESIDE = ("", "-wal", "-shm")  # what belongs to a file by its name

logger = logging.getLogger(__name__)


def be_sure_of(address: str) -> None:
    """Look at the file of a database before a server uses it. Raises StoreError where it is damaged.

    Raises StoreError also where it can be read and not written: a server would start, and store nothing. Of another
    database than SQLite there is nothing to look at.
    """
    file = file_of(address)
    if file is None:
        return
    _refuse_half_done(file)
    if not file.exists():
        return
    refuse_what_is_none_of_ours(file)
    wrong = damage(file)
    if wrong is not None:
        raise StoreError(
            f"database {file}: the file is damaged ({wrong}); name another file, restore a backup "
            "(docs/howto/backup.md), or give it up with oomwatch begin-anew, which puts it aside"
        )
    _try_to_write(file)


def refuse_what_is_none_of_ours(file: Path) -> None:
    """A folder, a file that is no database, and that of another program, into which our tables would be written.

    Raises StoreError.
    """
    if file.is_dir():
        raise StoreError(f"database {file}: is a folder; name a file in it")
    with suppress(OSError):  # not allowed: what looks next says so
        if not _may_be_sqlite(file) and not is_ours(file):
            raise explained(sqlite3.DatabaseError(_NO_DATABASE), str(file))
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {
                str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except sqlite3.Error:
        return  # damaged, locked or not allowed: what looks next says so
    if tables and tables.isdisjoint({"alembic_version", *metadata.tables}):
        named = ", ".join(sorted(tables)[:3])
        raise StoreError(f"database {file}: is another program's (it has {named}); name a file of its own with --db")


def _may_be_sqlite(file: Path) -> bool:
    """Whether a file begins as SQLite's do, or is empty. Raises OSError.

    SQLite itself takes a file of one byte for an empty one, and overwrites it (os_unix.c, fileSize).
    """
    with file.open("rb") as opened:
        begins = opened.read(len(_SQLITE_BEGINS))
    return begins in (b"", _SQLITE_BEGINS)


def unfinished(file: Path) -> Path:
    """The name of the empty database that is to take the file's place, while `oomwatch begin-anew` puts that aside."""
    return file.with_name(file.name + ".anew")


def _refuse_half_done(file: Path) -> None:
    """Where neither is in its place, a new database would be made, which is open to everybody."""
    new = unfinished(file)
    if new.exists():
        raise StoreError(
            f"database {file}: oomwatch begin-anew was cut short; run it again, or delete {new} to keep what is there"
        )


def is_ours(file: Path) -> bool:
    """Whether what is left of a file was made by oomwatch: several of our tables are described in it. Raises OSError.

    SQLite keeps the descriptions as text; not all of them are on the same page.
    """
    with file.open("rb") as opened:
        content = opened.read(LOOKED_AT_BYTES)
    described = [name for name in metadata.tables if re.search(rb'CREATE TABLE "?%b"?\s*\(' % name.encode(), content)]
    return len(described) >= TABLES_MIN


def damage(file: Path) -> str | None:
    """What SQLite finds wrong with a file, in its words; None: nothing, as far as it came in LOOK_SECONDS."""
    try:
        if file.is_file() and not _may_be_sqlite(file):
            return _NO_DATABASE
        with closing(sqlite3.connect(file)) as connection:
            until = time.monotonic() + LOOK_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except (sqlite3.OperationalError, OSError) as error:
        # Not allowed, locked, or not done in that time. Whoever opens it next says what can be done.
        logger.info("database %s was not looked at to its end: %s", file, in_words(error))
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if found == "ok" else found.replace("\n", " ")


def _try_to_write(file: Path) -> None:
    try:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE written_to (one)")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise explained(error, str(file)) from error


def files_of(file: Path) -> list[Path]:
    """The file and all that belongs to it by its name, itself at the end."""
    return [file.with_name(file.name + end) for end in reversed(_BESIDE)]


def put_aside(file: Path, at: float) -> Path:
    """Give the file another name, with all that belongs to it, so that it can still be opened. Raises OSError.

    The same time gives the same name: so what was begun once can be ended. Nothing is overwritten.
    """
    aside = _aside(file, at)
    while aside.exists() and file.exists():
        at += 1
        aside = _aside(file, at)
    for old, new in zip(files_of(file), files_of(aside), strict=True):
        with suppress(FileNotFoundError):
            old.rename(new)
    return aside


def _aside(file: Path, at: float) -> Path:
    return file.with_name(f"{file.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(at))}")
