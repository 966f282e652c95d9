"""The servers that share the database, and numbers of 64 bits: a large site stores 2**31 events in less than a year."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_NUMBERS = (
    ("transitions", "seq"),
    ("notices", "seq"),
    ("deliveries", "transition"),
    ("deliveries", "notice"),
    ("events", "id"),
)
_COUNTERS = ("transitions_seq_seq", "notices_seq_seq", "events_id_seq")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":  # SQLite's have 64 bits
        for table, column in _NUMBERS:
            op.alter_column(table, column, type_=sa.BigInteger)
        for counter in _COUNTERS:
            op.execute(f"ALTER SEQUENCE {counter} AS bigint")
    op.create_table(
        "members",
        sa.Column("replica", sa.String(253), primary_key=True),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
    )
