"""A fresh database for each test: on SQLite, and on PostgreSQL where that is installed."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres.server import PostgresServer, postgres_running

from oomwatch.store.store import Store

TEMPLATE = "oomwatch_template"
# For a test of what is SQLite's alone, in a file whose tests are made on both engines.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One for all tests, which must leave it running. A test that stops or breaks it makes its own."""
    with postgres_running() as server:
        Store.open(server.create(TEMPLATE)).close()
        yield server


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """For a test that stops or breaks it."""
    with postgres_running() as server:
        yield server


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database without tables."""
    yield from _database(postgres_server, "template0")


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with the tables of this version, and nothing in them."""
    yield from _database(postgres_server, TEMPLATE)


def _database(server: PostgresServer, template: str) -> Iterator[str]:
    name = f"t{os.getpid()}_{next(_numbers)}"
    yield server.create(name, template)
    server.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The test is made once on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/oomwatch.db"
    url: str = request.getfixturevalue("postgres_url")
    return url
