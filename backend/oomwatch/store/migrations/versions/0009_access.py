"""Tokens, and the log of what was done with them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(253), primary_key=True),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.String(253), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("address", sa.String(253), nullable=False),
        sa.Column("method", sa.String(20), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
