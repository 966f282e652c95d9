"""Every schema there ever was is brought to the one that the code uses, and a newer one is left alone."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from tests.server.older_databases import ALERT, fill, found_in

from oomwatch.store.address import parsed
from oomwatch.store.errors import StoreError
from oomwatch.store.migrate import MIGRATIONS, migrate, newest
from oomwatch.store.schema import metadata
from oomwatch.store.store import Store


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


# What a server that starts does with its database; the modules of Alembic that it has loaded then.
OPENING = """
import sys
from oomwatch.store.store import Store
Store.open(sys.argv[1]).close()
print("loaded:", [name for name in sys.modules if name.partition(".")[0] == "alembic"])
"""

REVISIONS = [script.revision for script in _scripts().walk_revisions()][::-1]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database without tables, on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/old.db"
    empty: str = request.getfixturevalue("empty_postgres_url")
    return empty


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    engine = create_engine(parsed(url))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def _at_revision(url: str, revision: str) -> None:
    with _connected(url) as connection:
        migrate(connection, url, revision)


def _differences(url: str) -> list[object]:
    with _connected(url) as connection:
        found = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)
    return list(found)


def test_an_empty_database_gets_the_tables_of_the_code(url: str) -> None:
    Store.open(url).close()
    assert _differences(url) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_an_older_revision_gets_the_tables_of_the_code_and_keeps_its_data(
    url: str, revision: str
) -> None:
    _at_revision(url, revision)
    with _connected(url) as connection:
        fill(connection)
    store = Store.open(url)
    assert found_in(store) == found_in(None)
    store.append([ALERT])  # counters go on after what was there
    assert [seq for seq, _ in store.transitions_since(0)] == [7, 8]
    store.close()
    assert _differences(url) == []


def test_the_comparison_would_notice_a_missing_column(url: str) -> None:
    _at_revision(url, "head")
    with _connected(url) as connection:
        connection.execute(text("ALTER TABLE runs DROP COLUMN simulated"))
    assert len(_differences(url)) == 1


def test_revisions_are_one_line_from_the_first_to_the_last() -> None:
    assert _scripts().get_bases() == [REVISIONS[0]]
    assert _scripts().get_heads() == [REVISIONS[-1]]


def test_the_newest_revision_is_known_without_alembic() -> None:
    assert newest() == REVISIONS[-1]


def test_a_database_that_is_up_to_date_costs_no_memory_for_migrations(url: str) -> None:
    Store.open(url).close()
    told = subprocess.run([sys.executable, "-c", OPENING, url], check=True, capture_output=True, text=True, timeout=60)
    assert told.stdout == "loaded: []\n"


def test_a_newer_schema_is_refused_with_the_remedy_and_left_as_it_is(url: str) -> None:
    _at_revision(url, "head")
    with _connected(url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match=r"its schema 9999 is newer .* install the newer oomwatch"):
        Store.open(url)
    with _connected(url) as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == ["9999"]


def test_servers_that_start_at_once_bring_one_database_to_the_schema_together(empty_postgres_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for store in pool.map(Store.open, [empty_postgres_url] * 4):
            store.close()
    assert _differences(empty_postgres_url) == []


def test_a_folder_with_a_percent_sign_in_its_name_is_a_folder_like_any_other(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/50%25/new.db").close()
    assert list(tmp_path.glob("50*/new.db"))
