"""One server a database, or several that act as one: who else would write to it is refused at the start.

Two servers on one database would each raise and tell of the same alerts, and neither would notice the other. The claim
on a SQLite file is a lock of the kernel on a file beside it, that on a PostgreSQL an advisory lock. Both go with the
process, however it ends; PostgreSQL's goes too where PostgreSQL is restarted, and is asked for at the start alone.
Commands that read, and backups, need no claim.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oomwatch.oserror import in_words, with_remedy
from oomwatch.store.address import file_of, parsed, place_of
from oomwatch.store.errors import FOLDER_REMEDY, StoreError
from oomwatch.store.lease import Lease
from oomwatch.store.locks import SERVING

# What a file system says that knows no such locks (flock(2)); a server there is on its own, as it always was.
_UNKNOWN = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

logger = logging.getLogger(__name__)


@contextmanager
def claimed(address: str, *, with_others: bool = False) -> Iterator[None]:
    """Hold the database at a path or a URL for this process alone. Raises StoreError where another server has it.

    `with_others`: of PostgreSQL, those that act as one may hold it together.
    """
    file = file_of(address)
    if parsed(address).get_backend_name() == "postgresql":
        with _postgres_claimed(address, with_others=with_others):
            yield
        return
    if file is None:
        yield
        return
    real = file.resolve()  # whatever it is called here
    lock = real.with_name(real.name + ".lock")
    try:
        lock.absolute().parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"database {file}: cannot open {lock}: {in_words(error)}; {FOLDER_REMEDY}") from error
    try:
        _take(handle, file, lock)
        yield
    finally:
        os.close(handle)


@contextmanager
def _postgres_claimed(url: str, *, with_others: bool) -> Iterator[None]:
    lease = Lease(url, SERVING, shared=with_others)
    try:
        if not lease.try_take():
            remedy = (
                "a server that runs alone uses it: stop that one, or let it be one of several, with --cluster-nats"
                if with_others
                else "another oomwatch server uses it; stop that one, give this one a database of its own with --db, "
                "or let both act as one: docs/howto/several-servers.md"
            )
            raise StoreError(f"database {place_of(parsed(url))}: {remedy}")
        yield
    finally:
        lease.close()


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
            raise StoreError(f"database {file}: cannot lock {lock}: {with_remedy(error)}") from error
        logger.warning("cannot see whether another server uses %s: its file system knows no locks", file)
        return
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
