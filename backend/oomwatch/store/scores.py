"""What a scorecard is made of: the alerts that fired, what ran full, and for how long GPUs were watched."""

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, func, select

from oomwatch import wire
from oomwatch.core.warned import FAILURES
from oomwatch.scorecard import Failure
from oomwatch.store import alerts
from oomwatch.store.schema import chunks, events, nodes, runs, subjects, transitions

KINDS = {str(body.__struct_config__.tag): channel for body, channel in FAILURES.items()}
_hello_decoder = msgspec.json.Decoder(wire.Hello)


def fired(connection: Connection, start: float, end: float, run: str | None) -> list[wire.Alert]:
    """The alerts that fired from `start` to `end`, as they are by now."""
    query = select(transitions.c.id).where(
        transitions.c.state == "firing", transitions.c.change == "state", transitions.c.at.between(start, end)
    )
    if run is not None:
        query = query.where(transitions.c.run == run)
    return alerts.whole(connection, list(dict.fromkeys(connection.scalars(query.order_by(transitions.c.seq)))))


def failures(connection: Connection, start: float, end: float, run: str | None) -> list[Failure]:
    """Everything that ran full, as single messages told it, in the order of time."""
    query = select(events.c.kind, events.c.at, events.c.node, events.c.run).where(
        events.c.at.between(start, end), events.c.kind.in_(KINDS), events.c.backlog.is_(False)
    )
    if run is not None:
        query = query.where(events.c.run == run)
    return [
        Failure(channel=KINDS[row.kind], at=row.at, end_at=row.at, node=row.node, run=row.run)
        for row in connection.execute(query.order_by(events.c.at, events.c.id))
    ]


def watched_gpu_seconds(connection: Connection, start: float, end: float, run: str | None) -> float:
    """For how long GPUs were read, summed over them; with `run`, those of its nodes while it was seen there."""
    paces = _paces(connection)
    if run is None:
        spans = [(node, start, end) for node in paces]
    else:
        found = connection.execute(select(runs.c.node, runs.c.first_seen, runs.c.last_seen).where(runs.c.run == run))
        spans = [(row.node, max(start, row.first_seen), min(end, row.last_seen)) for row in found]
    return sum(_watched(connection, node, first, last, paces.get(node, 0.0)) for node, first, last in spans)


def _paces(connection: Connection) -> dict[str, float]:
    """Seconds between two readings, by node."""
    found = connection.execute(select(nodes.c.node, nodes.c.hello))
    return {row.node: _hello_decoder.decode(row.hello).interval_seconds for row in found}


def _watched(connection: Connection, node: str, start: float, end: float, pace_seconds: float) -> float:
    start_ms, end_ms = round(start * 1000), round(end * 1000)
    if end_ms <= start_ms:
        return 0.0
    inside = and_(chunks.c.start_ms >= start_ms, chunks.c.end_ms <= end_ms)
    across = and_(chunks.c.start_ms <= end_ms, chunks.c.end_ms >= start_ms, ~inside)
    lengths = select(func.coalesce(func.sum(chunks.c.end_ms - chunks.c.start_ms), 0), func.count())
    total_ms, count = connection.execute(_of_gpus(lengths, node, inside)).one()
    edges = connection.execute(_of_gpus(select(chunks.c.start_ms, chunks.c.end_ms), node, across)).all()
    total_ms += sum(min(row.end_ms, end_ms) - max(row.start_ms, start_ms) for row in edges)
    # From its first reading to its last a piece of n readings lasts n - 1 intervals.
    return int(total_ms) / 1000 + (int(count) + len(edges)) * pace_seconds


def _of_gpus(query: "Select[Any]", node: str, when: ColumnElement[bool]) -> "Select[Any]":
    of_gpu = and_(chunks.c.subject == subjects.c.id, subjects.c.node == node, subjects.c.gpu != "")
    return query.select_from(chunks).join(subjects, of_gpu).where(when)
