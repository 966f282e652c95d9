"""One server a database file: who else would write to it is refused at the start.

Two servers on one SQLite file would each raise and tell of the same alerts, and neither would notice the other: SQLite
lets them write in turns. The claim is a lock of the kernel on a file beside the database, which goes with the process,
however it ends. Commands that read, and backups, need no claim. PostgreSQL may be shared.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oomwatch.store.address import file_of
from oomwatch.store.errors import FOLDER_REMEDY, StoreError

# What a file system says that knows no such locks (flock(2)); a server there is on its own, as it always was.
_UNKNOWN = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

logger = logging.getLogger(__name__)


@contextmanager
def claimed(url: str) -> Iterator[None]:
    """Hold the database at a SQLAlchemy URL for this process alone. Raises StoreError where another server has it."""
    file = file_of(url)
    if file is None:
        yield
        return
    real = file.resolve()  # whatever it is called here
    lock = real.with_name(real.name + ".lock")
    try:
        lock.absolute().parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"database {file}: cannot open {lock}: {error.strerror}; {FOLDER_REMEDY}") from error
    try:
        _take(handle, file, lock)
        yield
    finally:
        os.close(handle)


def _take(handle: int, file: Path, lock: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
        raise StoreError(
            f"database {file}: another oomwatch server (process {holder}) uses it; stop that one, or give this one a "
            "database of its own with --db"
        ) from error
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise StoreError(f"database {file}: cannot lock {lock}: {error.strerror}") from error
        logger.warning("cannot see whether another server uses %s: its file system knows no locks", file)
        return
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
