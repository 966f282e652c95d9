"""Every schema there ever was is brought to the one that the code uses, and a newer one is left alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from oomwatch.store.database import MIGRATIONS, migrate
from oomwatch.store.errors import StoreError
from oomwatch.store.schema import metadata
from oomwatch.store.store import Store


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


REVISIONS = [script.revision for script in _scripts().walk_revisions()][::-1]


def _at_revision(path: Path, revision: str) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrate(connection, str(path), revision)
    engine.dispose()


def _differences(path: Path) -> list[object]:
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)
    engine.dispose()
    return list(found)


def test_an_empty_database_gets_the_tables_of_the_code(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/new.db").close()
    assert _differences(tmp_path / "new.db") == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_an_older_revision_gets_the_tables_of_the_code(tmp_path: Path, revision: str) -> None:
    _at_revision(tmp_path / "old.db", revision)
    Store.open(f"sqlite:///{tmp_path}/old.db").close()
    assert _differences(tmp_path / "old.db") == []


def test_the_comparison_would_notice_a_missing_column(tmp_path: Path) -> None:
    _at_revision(tmp_path / "old.db", "head")
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.execute("ALTER TABLE runs DROP COLUMN simulated")
        connection.commit()
    assert len(_differences(tmp_path / "old.db")) == 1


def test_revisions_are_one_line_from_the_first_to_the_last() -> None:
    assert _scripts().get_bases() == [REVISIONS[0]]
    assert _scripts().get_heads() == [REVISIONS[-1]]


def test_a_newer_schema_is_refused_with_the_remedy_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    _at_revision(path, "head")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(StoreError, match=r"newer\.db: its schema 9999 is newer .* install the newer oomwatch"):
        Store.open(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]


def test_a_folder_with_a_percent_sign_in_its_name_is_a_folder_like_any_other(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/50%25/new.db").close()
    assert list(tmp_path.glob("50*/new.db"))
