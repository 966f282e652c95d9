"""The outbox of messages to channels, and the silences that people set."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "notices",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(253), nullable=False),
        sa.Column("channel", sa.String(253), nullable=False),
        sa.Column("incident", sa.String(253), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("done_at", sa.Double),
        sa.Column("error", sa.Text),
        sa.Column("receipt", sa.Text),
        sa.Column("document", sa.Text, nullable=False),
        sa.UniqueConstraint("channel", "id", name="uq_notices"),
    )
    op.create_index("ix_notices_state", "notices", ["state", "channel"])
    op.create_index("ix_notices_incident", "notices", ["channel", "incident"])
    op.create_index("ix_notices_made_at", "notices", ["made_at"])
    with op.batch_alter_table("deliveries") as deliveries:
        deliveries.add_column(sa.Column("notice", sa.Integer))
        deliveries.create_foreign_key("fk_deliveries_notice", "notices", ["notice"], ["seq"], ondelete="SET NULL")
    op.create_index("ix_deliveries_notice", "deliveries", ["notice"])
    op.create_table(
        "silences",
        sa.Column("id", sa.String(253), primary_key=True),
        sa.Column("ends_at", sa.Double, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("ix_silences_ends_at", "silences", ["ends_at"])
