"""Alembic's entry: runs the migrations on the connection that database.py hands over, inside its transaction."""

from alembic import context

from oomwatch.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
context.run_migrations()
