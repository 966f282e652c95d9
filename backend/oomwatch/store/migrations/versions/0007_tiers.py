"""Readings some seconds together, kept for longer. What was merged before is merged again, for its tiers."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("chunks", sa.Column("folded", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "tiers",
        sa.Column("subject", sa.Integer, sa.ForeignKey("subjects.id"), primary_key=True),
        sa.Column("width_ms", sa.Integer, primary_key=True),
        sa.Column("start_ms", sa.BigInteger, primary_key=True),
        sa.Column("first_ms", sa.BigInteger, nullable=False),
        sa.Column("end_ms", sa.BigInteger, nullable=False),
        sa.Column("blob", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "loose_pieces",
        sa.Column("piece_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("next_subject", sa.Integer, nullable=False),
    )
    op.execute("DELETE FROM loose_hours")
    op.execute(
        "INSERT INTO loose_hours (hour_ms, next_subject) SELECT DISTINCT start_ms - start_ms % 3600000, 0 FROM chunks"
    )
