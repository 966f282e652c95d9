"""`oomwatch backup`: a copy of the database that is whole, made while a server may run on it."""

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from oomwatch.commands.stored import file_of_it
from oomwatch.options import SettingError
from oomwatch.store.errors import StoreError, explained
from oomwatch.store.soundness import refuse_what_is_none_of_ours
from oomwatch.store.sqlite import BUSY_TIMEOUT_SECONDS

FAILED = 1
PAGES_AT_ONCE = 16_384  # 16 MiB: between two helpings the server may write
PAUSE_SECONDS = 0.01
WAIT_SECONDS = BUSY_TIMEOUT_SECONDS  # for a program that lets nobody read


def run(options: argparse.Namespace) -> int:
    """Make the copy and look whether it is sound. Gives the exit status."""
    file = file_of_it(options.db)
    if file is None:
        raise SettingError("db: is no file; a PostgreSQL is backed up by pg_dump: docs/howto/backup.md")
    if options.file.exists():
        raise SettingError(f"FILE: {options.file} is there already; a backup replaces nothing")
    if not file.is_file():
        raise SettingError(f"db: there is no {file}")
    try:
        _copy(file, options.file)
    except StoreError as error:
        with suppress(OSError):  # where there is no such folder, either
            options.file.unlink()
        print(f"oomwatch: {error}; nothing is left of {options.file}", file=sys.stderr)
        return FAILED
    print(f"{options.file}: {options.file.stat().st_size / 2**20:.1f} MiB, checked")
    return 0


def _copy(file: Path, copy: Path) -> None:
    """SQLite's own way, page by page, in one state of the database. Raises StoreError."""
    with ExitStack() as stack:
        with _told_of(file):
            address = f"{file.absolute().as_uri()}?mode=ro"
            source = stack.enter_context(closing(sqlite3.connect(address, uri=True, timeout=WAIT_SECONDS)))
            source.execute("BEGIN")  # one state: what is written meanwhile would begin the copy anew
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            refuse_what_is_none_of_ours(file)
        with _told_of(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            target = stack.enter_context(closing(sqlite3.connect(copy)))
            source.backup(target, pages=PAGES_AT_ONCE, sleep=PAUSE_SECONDS, progress=_tell)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        with _told_of(file):  # page by page it is what the database is
            found = str(target.execute("PRAGMA integrity_check(1)").fetchone()[0])
            if found != "ok":
                raise sqlite3.DatabaseError(f"database disk image is malformed ({' '.join(found.split())})")


@contextmanager
def _told_of(place: Path) -> Iterator[None]:
    """What goes wrong is told of this file, with what to do about it. Raises StoreError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explained(error, str(place)) from error


def _tell(_status: int, remaining: int, total: int) -> None:
    if sys.stderr.isatty() and total:
        print(f"\r{100 * (total - remaining) // total} %", end="", file=sys.stderr, flush=True)
