"""What `migrate` has to do where a database is not of this version's schema, by Alembic."""

import alembic.command
import alembic.config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection

from oomwatch.store.errors import StoreError, explained
from oomwatch.store.migrate import MIGRATIONS


def upgrade(connection: Connection, place: str, revision: str) -> None:
    """Raises StoreError where a newer oomwatch wrote the tables, or Alembic finds fault with them."""
    config = alembic.config.Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise StoreError(
            f"database {place}: its schema {current} is newer than this oomwatch, which knows up to "
            f"{scripts.get_current_head()}; install the newer oomwatch again, or name another database"
        )
    try:
        alembic.command.upgrade(config, revision)
    except CommandError as error:
        raise explained(error, place) from error
