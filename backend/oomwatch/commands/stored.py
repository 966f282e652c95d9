"""The server's database, for the commands that work on it without the server."""

import os

from oomwatch.settings import Settings, database_address
from oomwatch.store.address import file_of
from oomwatch.store.errors import StoreError
from oomwatch.store.store import Store


def database_of(db: str | None) -> str:
    """Its address: what `--db` or the environment says, else where a server would keep it."""
    return database_address(Settings(db=db or os.environ.get("OOMWATCH_DB")))


def opened(db: str | None, *, otherwise: str = "") -> Store:
    """What is there already: none is made. Raises StoreError; `otherwise` says what else than --db may be given."""
    address = database_of(db)
    file = file_of(address)
    if file is not None and not file.is_file():
        raise StoreError(f"there is no database {file}; name one with --db{otherwise}")
    return Store.open(address)
