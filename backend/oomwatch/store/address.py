"""Where a database is: its URL read, and what of it may be told."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from oomwatch.settings import is_url
from oomwatch.store.errors import StoreError

POSTGRES_DRIVER = "postgresql+psycopg"
_IN_MEMORY = (None, "", ":memory:")
_POSTGRES_NAMES = ("postgres", "postgresql", POSTGRES_DRIVER)


def parsed(address: str) -> URL:
    """A URL, with the driver that we use, of what is the path of a SQLite file or a URL. Raises StoreError."""
    if not is_url(address):
        return URL.create("sqlite", database=address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is no number
        raise StoreError(
            f"{_quoted(address)} is no database URL; write for example sqlite:////var/lib/oomwatch/oomwatch.db or "
            "postgresql://oomwatch@db.example/oomwatch"
        ) from error
    if url.drivername in _POSTGRES_NAMES:
        return url.set(drivername=POSTGRES_DRIVER)
    if url.get_backend_name() in ("postgres", "postgresql"):
        raise StoreError(f"database {place_of(url)}: {url.drivername} is not used; write postgresql://")
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise StoreError(
            f"database {place_of(url)}: {url.drivername} is not known; oomwatch keeps its data in sqlite:/// (a file) "
            "or postgresql://"
        )
    return url


def place_of(url: URL) -> str:
    """What an error calls it, without the password."""
    if url.get_backend_name() == "sqlite":
        return url.database or "in memory"
    # A password may also be given as a parameter, as libpq takes it.
    shown = url.difference_update_query([name for name in url.query if "password" in name.lower()])
    return shown.set(drivername=shown.drivername.partition("+")[0]).render_as_string(hide_password=True)


def is_in_memory(address: str) -> bool:
    """Whether it is gone with the process. Raises StoreError."""
    url = parsed(address)
    return url.get_backend_name() == "sqlite" and url.database in _IN_MEMORY


def file_of(address: str) -> Path | None:
    """SQLite's file; None for another database than SQLite, and for one in memory. Raises StoreError."""
    return file_of_url(parsed(address))


def file_of_url(url: URL) -> Path | None:
    """SQLite's file; None for another database, and for one in memory."""
    if url.get_backend_name() != "sqlite" or url.database in _IN_MEMORY or "uri" in url.query:
        return None
    return Path(str(url.database))


def _quoted(address: str) -> str:
    """What was written, up to where a password may begin."""
    return f'"{address}"' if "@" not in address else f'"{address.partition("://")[0]}://..."'
