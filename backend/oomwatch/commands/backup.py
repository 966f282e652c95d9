"""`oomwatch backup`: a copy of the database that is whole, made while a server may run on it."""

import argparse
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from oomwatch.commands.stored import file_of_it
from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy

FAILED = 1
PAGES_AT_ONCE = 16_384  # 16 MiB: between two helpings the server may write
PAUSE_SECONDS = 0.01


def run(options: argparse.Namespace) -> int:
    """Make the copy and look whether it is sound. Gives the exit status."""
    file = file_of_it(options.db)
    if file is None:
        raise SettingError("db: is no file; a PostgreSQL is backed up by pg_dump: docs/howto/backup.md")
    if options.file.exists():
        raise SettingError(f"FILE: {options.file} is there already; a backup replaces nothing")
    if not file.exists():
        raise SettingError(f"db: there is no {file}")
    try:
        _copy(file, options.file)
    except (sqlite3.Error, OSError) as error:
        options.file.unlink(missing_ok=True)
        print(f"oomwatch: {options.file}: {with_remedy(error)}; nothing is left of it", file=sys.stderr)
        return FAILED
    print(f"{options.file}: {options.file.stat().st_size / 2**20:.1f} MiB, checked")
    return 0


def _copy(file: Path, copy: Path) -> None:
    """SQLite's own way, page by page, in one state of the database. Raises sqlite3.Error."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.execute("BEGIN")  # one state: what is written meanwhile would begin the copy anew
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(target, pages=PAGES_AT_ONCE, sleep=PAUSE_SECONDS, progress=_tell)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        found = target.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(f"the copy is damaged, and so may be the database: {found}")


def _tell(_status: int, remaining: int, total: int) -> None:
    if sys.stderr.isatty() and total:
        print(f"\r{100 * (total - remaining) // total} %", end="", file=sys.stderr, flush=True)
