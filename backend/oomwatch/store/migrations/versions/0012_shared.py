"""What several servers have to know of each other's: nodes that are gone for good, and reports of incidents."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("nodes", sa.Column("retired_at", sa.Double))
    op.create_table(
        "reports",
        sa.Column("incident", sa.String(253), primary_key=True),
        sa.Column("entry", sa.LargeBinary, nullable=False),
        sa.Column("report", sa.LargeBinary, nullable=False),
    )
