"""Brings the tables of a database to the schema of this version: one path for both engines."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from oomwatch.store.locks import MIGRATION, lock

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection, place: str, revision: str = "head") -> None:
    """Bring the tables to a revision. Raises StoreError where a newer oomwatch wrote them.

    Servers that start at once do so one after the other, and all but the first find nothing to do.
    """
    lock(connection, MIGRATION)
    if revision == "head" and _current(connection) == newest():
        return
    from oomwatch.store.upgrade import upgrade  # noqa: PLC0415 - memory: Alembic's 11 MiB, which nearly no start needs

    upgrade(connection, place, revision)


def newest() -> str:
    """The revision of this version: each file of versions/ begins with its own, and they are in order."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def _current(connection: Connection) -> str | None:
    """What Alembic wrote when it was here last."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found
