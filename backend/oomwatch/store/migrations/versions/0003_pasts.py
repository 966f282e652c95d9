"""What the memory of each run was when it last went well."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "pasts",
        sa.Column("run", sa.String(253), primary_key=True),
        sa.Column("kept_at", sa.Double, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
