"""The database: is it there, sound, and of which schema? Nothing in it is changed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.oserror import in_words
from oomwatch.settings import Settings, database_address

FAMILY = Family("database")
ANEW = "restore a backup (docs/howto/backup.md), or give it up with oomwatch begin-anew"
NEW = "it is made when the server starts"


def checks(settings: Settings) -> Iterator[Finding]:
    """A file, or a PostgreSQL."""
    from oomwatch.store.address import file_of_url, parsed, place_of  # noqa: PLC0415 - of the server's extra
    from oomwatch.store.errors import StoreError  # noqa: PLC0415

    try:
        url = parsed(database_address(settings))
        file = file_of_url(url)
        if file is not None:
            yield from _of_file(file)
        elif url.get_backend_name() == "postgresql":
            yield from _of_postgres(database_address(settings), place_of(url))
        else:
            yield FAMILY.warning("place", "in memory: all is gone when the server ends", "name a file with --db")
    except StoreError as error:
        yield FAMILY.wrong("place", str(error), "docs/howto/postgresql.md has how to set one up")


def _of_file(file: Path) -> Iterator[Finding]:
    from oomwatch.store.soundness import damage  # noqa: PLC0415

    try:
        if not file.exists():
            yield FAMILY.ok("file", f"{file}: not there yet; {NEW}")
            return
        wrong = damage(file)
        if wrong is not None:
            yield FAMILY.wrong("file", f"{file} is damaged: {wrong}", ANEW)
            return
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        yield FAMILY.wrong("file", f"{file}: {error}", "may this user read it, and was it made by oomwatch?")
        return
    except OSError as error:
        yield FAMILY.wrong("file", f"{file}: {in_words(error)}", "run this as the server's user")
        return
    yield _schema(f"{file}, {file.stat().st_size / 2**20:.1f} MiB", found[0] if found else None)


def _of_postgres(address: str, place: str) -> Iterator[Finding]:
    from sqlalchemy import inspect, text  # noqa: PLC0415

    from oomwatch.store.database import hurried_database  # noqa: PLC0415

    database = hurried_database(address)
    try:
        with database.reading() as connection:
            known = inspect(connection).has_table("alembic_version")
            found = connection.scalar(text("SELECT version_num FROM alembic_version")) if known else None
    finally:
        database.close()
    yield _schema(place, found)


def _schema(place: str, found: str | None) -> Finding:
    from oomwatch.store.migrate import newest  # noqa: PLC0415

    if found is None:
        return FAMILY.ok("schema", f"{place}: empty; {NEW}")
    if found > newest():
        said = f"{place}: schema {found} is newer than this oomwatch, which knows {newest()}"
        return FAMILY.wrong("schema", said, "install the newer oomwatch again, or name another database")
    if found < newest():
        return FAMILY.ok("schema", f"{place}: schema {found}; the server brings it to {newest()} when it starts")
    return FAMILY.ok("schema", f"{place}: schema {found}, the newest")
