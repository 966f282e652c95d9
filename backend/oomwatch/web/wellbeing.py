"""Whether the server does its work: what /readyz says, and what the dead man's switches hang on.

Each function gives sentences, none where all is well. They look at what is in memory and wait for nothing.

    ailing()    what only another start mends            -> /readyz, heartbeat and Watchdog, systemd
    silencing() and what keeps an alert from being told  -> heartbeat and Watchdog
    unready()   what ails, and that nothing can be kept  -> /readyz
    degraded()  of several servers: what all lack        -> /readyz, which says 200 all the same
"""

from collections.abc import Iterable, Iterator

from oomwatch.service.service import STUCK_SECONDS
from oomwatch.web.parts import Parts

# A writer that finds the database locked by another program gives up after 5 s (store.database), and a few may queue.
WRITER_STUCK_SECONDS = 20.0
READERS_STUCK_SECONDS = 60.0  # a chart over weeks takes seconds
RESTART = "see the log, and restart the server"


def ailing(parts: Parts) -> list[str]:
    """Parts that have ended or hang: what is judged or told from now on may be nothing."""
    return [*_ended(parts), *_hanging(parts)]


def silencing(parts: Parts) -> list[str]:
    """Why an alert might not be told. A database that cannot be written is no reason: alerts go out all the same."""
    unjudged = [f"{what} fails by a defect of oomwatch; see the log" for what in parts.service.defects.unjudged()]
    return [*ailing(parts), *unjudged, *_closing(parts)]


def unready(parts: Parts) -> list[str]:
    """Why nothing should be sent here. A rule that fails is no reason: no other server would judge by it."""
    storage = parts.journal.problem
    if parts.cluster is not None and not parts.cluster.replica.keeping.is_cut_off:
        storage = None  # all are in the same plight: no other would do better
    return [*([storage] if storage is not None else []), *ailing(parts), *_closing(parts)]


def degraded(parts: Parts) -> list[str]:
    """What is amiss while everything goes on: with a database or a NATS that all servers share."""
    if parts.cluster is None:
        return []
    storage = parts.journal.problem
    return [*([f"degraded: {storage}"] if storage is not None else []), *parts.cluster.replica.keeping.problems()]


def _ended(parts: Parts) -> Iterator[str]:
    if not parts.journal.is_running:
        yield f"nothing is stored and nobody is told any more; {RESTART}"
    for name in parts.dead_tasks:
        yield f"the task {name} has ended by a defect; {RESTART}"
    yield from parts.herald.problems()


def _hanging(parts: Parts) -> Iterator[str]:
    late_seconds = parts.service.seconds_since_beat()
    if late_seconds > STUCK_SECONDS:
        yield f"the rules were last judged {late_seconds:.0f} s ago"
    for pool, limit_seconds, what in (
        (parts.threads.writer, WRITER_STUCK_SECONDS, "has not ended a write"),
        (parts.threads.readers, READERS_STUCK_SECONDS, "has not answered a question"),
    ):
        owed_seconds = pool.owed_seconds()
        if owed_seconds > limit_seconds:
            yield f"the database {what} for {owed_seconds:.0f} s; does its disk or its server hang?"


def _closing(parts: Parts) -> Iterable[str]:
    return ["the server is going down"] if parts.service.reception.is_closed else []
