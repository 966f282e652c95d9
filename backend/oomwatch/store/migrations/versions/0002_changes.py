"""What a transition changes: its state, its severity, or what is known of it afterwards.

An outcome may come in the same moment as the state that it belongs to, so the change is part of what tells one
transition from another.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # SQLite makes the table anew for this, and what was delivered is deleted with the old one.
    op.execute("CREATE TABLE kept_deliveries AS SELECT channel, transition FROM deliveries")
    with op.batch_alter_table("transitions") as table:
        table.add_column(sa.Column("change", sa.String(20), nullable=False, server_default="state"))
        table.drop_constraint("uq_transitions", type_="unique")
        table.create_unique_constraint("uq_transitions", ["id", "state", "at", "change"])
    op.execute("DELETE FROM deliveries")
    op.execute("INSERT INTO deliveries (channel, transition) SELECT channel, transition FROM kept_deliveries")
    op.drop_table("kept_deliveries")
