"""The tables. Portable SQL: text, numbers and bytes; JSON is text that msgspec wrote.

Times are Unix seconds, except in chunks, where they are whole milliseconds. A change here needs a migration in
migrations/versions; tests/server/test_store_migrations.py holds the two to be equal.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from oomwatch import wire
from oomwatch.store.spelled import Spelled, SpelledText

metadata = MetaData()
_NAME = Spelled(wire.NAME_CHARS_MAX)
_WORDS = SpelledText()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite's Integer has 64 bits, and only it counts by itself

# Append-only, in the order in which the engine said them; `document` is the wire.Transition. The columns beside it are
# there to be searched.
transitions = Table(
    "transitions",
    metadata,
    Column("seq", _NUMBER, primary_key=True),
    Column("id", _NAME, nullable=False),
    Column("alert", _NAME, nullable=False),
    Column("state", String(20), nullable=False),
    Column("at", Double, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("node", _WORDS),
    Column("run", _WORDS),
    Column("document", Text, nullable=False),
    Column("change", String(20), nullable=False, server_default="state"),
    UniqueConstraint("id", "state", "at", "change", name="uq_transitions"),
    Index("ix_transitions_id", "id", "seq"),
    Index("ix_transitions_at", "at"),
)

# The outbox: one row a message to one channel, made in the transaction that says which transitions it tells of
# (`deliveries`). `id` is the key by which the receiver knows a repeated attempt; `document` is a notify.notice.Notice.
notices = Table(
    "notices",
    metadata,
    Column("seq", _NUMBER, primary_key=True),
    Column("id", _NAME, nullable=False),
    Column("channel", _NAME, nullable=False),
    Column("incident", _NAME, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("state", String(20), nullable=False),  # one of wire.DeliveryState
    Column("made_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("done_at", Double),
    Column("error", _WORDS),
    Column("receipt", _WORDS),  # what the channel needs to find its message again, for example Slack's timestamp
    Column("document", Text, nullable=False),
    UniqueConstraint("channel", "id", name="uq_notices"),
    Index("ix_notices_state", "state", "channel"),
    Index("ix_notices_incident", "channel", "incident"),
    Index("ix_notices_made_at", "made_at"),
)

# Which transitions a channel has been told of, or is being told of by a notice.
deliveries = Table(
    "deliveries",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("transition", _NUMBER, ForeignKey("transitions.seq", ondelete="CASCADE"), primary_key=True),
    Column("notice", _NUMBER, ForeignKey("notices.seq", name="fk_deliveries_notice", ondelete="SET NULL")),
    Index("ix_deliveries_transition", "transition"),
    Index("ix_deliveries_notice", "notice"),
)

# Since when there is a channel of that name: what was over by then it is not told of. `health` is what other channels
# were last told of it.
channels = Table(
    "channels",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("known_since", Double, nullable=False),
    Column("health", String(20), nullable=False),  # one of wire.ChannelHealth
    Column("error", _WORDS),
    Column("error_at", Double),
)

# `document` is the wire.Silence. One that was ended early has its end moved.
silences = Table(
    "silences",
    metadata,
    Column("id", _NAME, primary_key=True),
    Column("ends_at", Double, nullable=False),
    Column("document", Text, nullable=False),
    Index("ix_silences_ends_at", "ends_at"),
)

nodes = Table(
    "nodes",
    metadata,
    Column("node", _NAME, primary_key=True),
    Column("session", _NAME, nullable=False),
    Column("hello", Text, nullable=False),
    Column("run", _NAME),
    Column("simulated", Boolean, nullable=False),
    Column("last_seen", Double, nullable=False),
    Column("stopped", Boolean, nullable=False),
    # When a person said that it is gone for good: it is, unless it was heard since.
    Column("retired_at", Double),
)

# The last stored sequence number of each agent session: what welcome.resume_after_seq says.
progress = Table(
    "progress",
    metadata,
    Column("node", _NAME, primary_key=True),
    Column("session", _NAME, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("seen_at", Double, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("run", _NAME, primary_key=True),
    Column("node", _NAME, primary_key=True),
    Column("first_seen", Double, nullable=False),
    Column("last_seen", Double, nullable=False),
    Column("simulated", Boolean, nullable=False),
)

# What the memory of each run was when it last went well; `document` is a core.past.Past.
pasts = Table(
    "pasts",
    metadata,
    Column("run", _NAME, primary_key=True),
    Column("kept_at", Double, nullable=False),
    Column("document", Text, nullable=False),
)

# `gpu` is "" for the host itself: a GPU's label is never empty.
subjects = Table(
    "subjects",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("node", _NAME, nullable=False),
    Column("gpu", _NAME, nullable=False),
    UniqueConstraint("node", "gpu", name="uq_subjects"),
)

# Readings as compressed columns (columns.py). A chunk never crosses an hour, so a range of time needs no second index;
# SQLite keeps a subject's chunks side by side, as history is read.
chunks = Table(
    "chunks",
    metadata,
    Column("subject", Integer, ForeignKey("subjects.id"), primary_key=True),
    Column("start_ms", BigInteger, primary_key=True),
    Column("end_ms", BigInteger, nullable=False),  # of its last reading
    Column("blob", LargeBinary, nullable=False),
    # Its readings are in the tiers. SQLite keeps what is false or true in the row's head: it reads no blob to know it.
    Column("folded", Boolean, nullable=False, server_default=false()),
    sqlite_with_rowid=False,
)

# The same readings, some seconds together (tiers.py): one row a width, subject and span of time.
tiers = Table(
    "tiers",
    metadata,
    Column("subject", Integer, ForeignKey("subjects.id"), primary_key=True),
    Column("width_ms", Integer, primary_key=True),
    Column("start_ms", BigInteger, primary_key=True),  # of its span; what it holds may begin later
    Column("first_ms", BigInteger, nullable=False),  # of its first bucket
    Column("end_ms", BigInteger, nullable=False),  # of its last bucket
    Column("blob", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Hours that hold chunks not yet merged and folded; subjects below `next_subject` are done.
loose_hours = Table(
    "loose_hours",
    metadata,
    Column("hour_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("next_subject", Integer, nullable=False),
)

# The same of every ten minutes whose chunks are not yet merged into one.
loose_pieces = Table(
    "loose_pieces",
    metadata,
    Column("piece_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("next_subject", Integer, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("at", Double, nullable=False),
    Column("node", _NAME, nullable=False),
    Column("run", _NAME),
    Column("kind", String(40), nullable=False),
    Column("gpu", _NAME),
    Column("backlog", Boolean, nullable=False),
    Column("origin", Text),
    Column("body", Text, nullable=False),
    Index("ix_events_at", "at"),
    Index("ix_events_run", "run", "kind", "at"),
    Index("ix_events_node", "node", "kind", "at"),
)

# Only digests of tokens are kept; `document` is an access.token.Token.
tokens = Table(
    "tokens",
    metadata,
    Column("id", _NAME, primary_key=True),
    Column("name", _NAME, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("digest", name="uq_tokens_digest"),
)

# access.person.User; `password` is its hash.
users = Table(
    "users",
    metadata,
    Column("name", _NAME, primary_key=True),
    Column("role", String(20), nullable=False),
    Column("password", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("removed_at", Double),
)

# access.person.Session: browsers that somebody signed in with.
sessions = Table(
    "sessions",
    metadata,
    Column("id", _NAME, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", _NAME, nullable=False),
    Column("role", String(20), nullable=False),
    Column("door", String(20), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double, nullable=False),
    UniqueConstraint("digest", name="uq_sessions_digest"),
    Index("ix_sessions_name", "name"),
)

# Append-only: what people had the server do (access.audit.Deed).
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("who", _NAME, nullable=False),
    Column("role", String(20), nullable=False),
    Column("address", _NAME, nullable=False),
    Column("method", Spelled(20), nullable=False),
    Column("path", _WORDS, nullable=False),
    Column("status", Integer, nullable=False),
    Index("ix_audit_at", "at"),
)

# What several servers wrote of what ran out of memory: incident.report.Entry and Incident, as JSON.
reports = Table(
    "reports",
    metadata,
    Column("incident", _NAME, primary_key=True),
    Column("entry", LargeBinary, nullable=False),
    Column("report", LargeBinary, nullable=False),
)

# The servers that share this database. Times are PostgreSQL's own: no two machines agree on the second.
members = Table(
    "members",
    metadata,
    Column("replica", _NAME, primary_key=True),
    Column("address", _WORDS, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
)
