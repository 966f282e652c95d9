"""The folders that the programs write to: may they, and is there room?"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.oserror import in_words
from oomwatch.settings import Settings, database_address, incidents_path, keeps_incidents_in_database

FAMILY = Family("folders")
SCARCE_BYTES, NONE_LEFT_BYTES = 2 * 2**30, 200 * 2**20  # a day of a thousand GPUs is a GB (docs/explanation/history.md)
GIB = 2**30


def checks(settings: Settings) -> Iterator[Finding]:
    """Of the server's database, where it is a file, and of its reports."""
    from oomwatch.store.address import file_of  # noqa: PLC0415 - of the server's extra
    from oomwatch.store.errors import StoreError  # noqa: PLC0415

    file = None
    with contextlib.suppress(StoreError):  # the database's own check says what is wrong with it
        file = file_of(database_address(settings))
    if file is not None:
        yield from folder("database", file.parent)
    if not keeps_incidents_in_database(settings):
        yield from folder("incident reports", incidents_path(settings, file))


def _free_bytes(there: Path) -> int:
    return shutil.disk_usage(there).free


def folder(what: str, path: Path, free_bytes: Callable[[Path], int] = _free_bytes) -> Iterator[Finding]:
    """Whether files can be made there, or where the folder would be made, and how much room is left."""
    there = path
    while not os.access(there, os.F_OK):  # Path.exists raises where a folder above is closed to us
        there = there.parent
    if not there.is_dir():
        yield FAMILY.wrong(what, f"{there} is no folder", "name another place, or move that file away")
        return
    fault = _cannot_write(there)
    if fault is not None:
        remedy = f"chown it to user {os.geteuid()}, or name another place (--db, --incidents); is it mounted read-only?"
        yield FAMILY.wrong(what, f"{there} cannot be written to: {fault}", remedy)
        return
    free = free_bytes(there)
    said = f"{path}, {free / GIB:.1f} GiB free"
    if free < NONE_LEFT_BYTES:
        yield FAMILY.wrong(what, said, "make room: nothing could be stored")
    elif free < SCARCE_BYTES:
        yield FAMILY.warning(what, said, "make room, or keep less: --history-raw-keep, --history-keep")
    else:
        yield FAMILY.ok(what, said)


def _cannot_write(there: Path) -> str | None:
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".oomwatch-"):
            return None
    except OSError as error:
        return in_words(error)
