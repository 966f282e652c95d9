"""The first schema: transitions, deliveries, nodes, progress, runs, readings and events.

Migrations go forward only: an older server refuses a newer database, and a backup is the way back.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_alert_tables()
    _create_agent_tables()
    _create_reading_tables()
    _create_events()


def _create_alert_tables() -> None:
    op.create_table(
        "transitions",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(253), nullable=False),
        sa.Column("alert", sa.String(253), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("node", sa.Text),
        sa.Column("run", sa.Text),
        sa.Column("document", sa.Text, nullable=False),
        sa.UniqueConstraint("id", "state", "at", name="uq_transitions"),
    )
    op.create_index("ix_transitions_id", "transitions", ["id", "seq"])
    op.create_index("ix_transitions_at", "transitions", ["at"])
    op.create_table(
        "deliveries",
        sa.Column("channel", sa.String(253), primary_key=True),
        sa.Column("transition", sa.Integer, sa.ForeignKey("transitions.seq", ondelete="CASCADE"), primary_key=True),
    )
    op.create_index("ix_deliveries_transition", "deliveries", ["transition"])


def _create_agent_tables() -> None:
    op.create_table(
        "nodes",
        sa.Column("node", sa.String(253), primary_key=True),
        sa.Column("session", sa.String(253), nullable=False),
        sa.Column("hello", sa.Text, nullable=False),
        sa.Column("run", sa.String(253)),
        sa.Column("simulated", sa.Boolean, nullable=False),
        sa.Column("last_seen", sa.Double, nullable=False),
        sa.Column("stopped", sa.Boolean, nullable=False),
    )
    op.create_table(
        "progress",
        sa.Column("node", sa.String(253), primary_key=True),
        sa.Column("session", sa.String(253), primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("run", sa.String(253), primary_key=True),
        sa.Column("node", sa.String(253), primary_key=True),
        sa.Column("first_seen", sa.Double, nullable=False),
        sa.Column("last_seen", sa.Double, nullable=False),
        sa.Column("simulated", sa.Boolean, nullable=False),
    )


def _create_reading_tables() -> None:
    op.create_table(
        "subjects",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("gpu", sa.String(253), nullable=False),
        sa.UniqueConstraint("node", "gpu", name="uq_subjects"),
    )
    op.create_table(
        "chunks",
        sa.Column("subject", sa.Integer, sa.ForeignKey("subjects.id"), primary_key=True),
        sa.Column("start_ms", sa.BigInteger, primary_key=True),
        sa.Column("end_ms", sa.BigInteger, nullable=False),
        sa.Column("blob", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "loose_hours",
        sa.Column("hour_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("next_subject", sa.Integer, nullable=False),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("run", sa.String(253)),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("gpu", sa.String(253)),
        sa.Column("backlog", sa.Boolean, nullable=False),
        sa.Column("origin", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("ix_events_at", "events", ["at"])
    op.create_index("ix_events_run", "events", ["run", "kind", "at"])
    op.create_index("ix_events_node", "events", ["node", "kind", "at"])
