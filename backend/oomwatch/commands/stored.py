"""The server's database, for the commands that work on it without the server."""

import os
from pathlib import Path

from oomwatch.options import SettingError
from oomwatch.settings import Settings, database_address
from oomwatch.store.address import file_of
from oomwatch.store.errors import StoreError
from oomwatch.store.store import Store


def database_of(db: str | None) -> str:
    """Its address: what `--db` or the environment says, else where a server would keep it."""
    return database_address(Settings(db=db or os.environ.get("OOMWATCH_DB")))


def file_of_it(db: str | None) -> Path | None:
    """Its file; None where it is none. Raises SettingError where the address is no good."""
    try:
        return file_of(database_of(db))
    except StoreError as error:
        raise SettingError(f"db: {error}") from error


def opened(db: str | None, *, otherwise: str = "") -> Store:
    """What is there already: none is made. Raises StoreError; `otherwise` says what else than --db may be given."""
    address = database_of(db)
    file = file_of(address)
    if file is not None and not file.is_file():
        raise StoreError(f"there is no database {file}; name one with --db{otherwise}")
    return Store.open(address)
