"""Brings the tables of a database to the schema of this version, by Alembic: one path for both engines."""

from pathlib import Path

import alembic.command
import alembic.config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from oomwatch.store.errors import StoreError
from oomwatch.store.locks import MIGRATION, lock

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection, place: str, revision: str = "head") -> None:
    """Bring the tables to a revision. Raises StoreError where a newer oomwatch wrote them.

    Servers that start at once do so one after the other, and all but the first find nothing to do.
    """
    lock(connection, MIGRATION)
    config = alembic.config.Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise StoreError(
            f"database {place}: its schema {current} is newer than this oomwatch, which knows up to "
            f"{scripts.get_current_head()}; install the newer oomwatch again, or name another database"
        )
    if current != scripts.get_current_head():
        alembic.command.upgrade(config, revision)
