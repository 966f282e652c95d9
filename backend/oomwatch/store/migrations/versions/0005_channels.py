"""Since when there is each channel, and how it fared when others were last told of it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("channel", sa.String(253), primary_key=True),
        sa.Column("known_since", sa.Double, nullable=False),
        sa.Column("health", sa.String(20), nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("error_at", sa.Double),
    )
    # Channels of older versions are known since the first thing that they were told of.
    op.execute(
        "INSERT INTO channels (channel, known_since, health) "
        "SELECT deliveries.channel, MIN(transitions.at), 'ok' FROM deliveries "
        "JOIN transitions ON transitions.seq = deliveries.transition GROUP BY deliveries.channel"
    )
