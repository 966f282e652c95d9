"""What a scorecard is made of: the alerts that fired, what ran full, and for how long GPUs were watched."""

from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, and_, func, select

from oomwatch import wire
from oomwatch.core.warned import FAILURES
from oomwatch.scorecard import Failure
from oomwatch.store import alerts
from oomwatch.store.schema import chunks, events, nodes, runs, subjects, tiers, transitions
from oomwatch.store.tiers import COARSE, FINE

KINDS = {str(body.__struct_config__.tag): channel for body, channel in FAILURES.items()}
END_MS = 10**15  # of wire.UnixSeconds
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
    """By the loose chunks, the fine tier, and the coarse one of the time before that."""
    start_ms, end_ms = round(start * 1000), round(end * 1000)
    if end_ms <= start_ms:
        return 0.0
    span = start_ms, end_ms, round(pace_seconds * 1000)
    fine = tiers.c.width_ms == FINE.width_ms
    oldest_ms = connection.scalar(_of_gpus(select(func.min(tiers.c.first_ms)), tiers, node, fine)) or END_MS
    older = and_(tiers.c.width_ms == COARSE.width_ms, tiers.c.first_ms < oldest_ms - oldest_ms % COARSE.span_ms)
    total_ms = _lengths(connection, node, chunks, chunks.c.start_ms, chunks.c.folded.is_(False), span)
    for which, width_ms in ((fine, FINE.width_ms), (older, COARSE.width_ms)):
        total_ms += _lengths(connection, node, tiers, tiers.c.first_ms, which, (start_ms, end_ms, width_ms))
    return total_ms / 1000


def _lengths(
    connection: Connection, node: str, table: Table, first: "Column[int]", which: ColumnElement[bool],
    span: tuple[int, int, int],
) -> int:  # fmt: skip
    """Milliseconds that rows cover within a span. From first to last n readings last n - 1 intervals."""
    start_ms, end_ms, pace_ms = span
    last = table.c.end_ms
    inside = and_(which, first >= start_ms, last <= end_ms)
    across = and_(which, first <= end_ms, last >= start_ms, ~and_(first >= start_ms, last <= end_ms))
    sums = select(func.coalesce(func.sum(last - first), 0), func.count())
    total_ms, count = connection.execute(_of_gpus(sums, table, node, inside)).one()
    edges = connection.execute(_of_gpus(select(first, last), table, node, across)).all()
    total_ms += sum(min(last_ms, end_ms) - max(first_ms, start_ms) for first_ms, last_ms in edges)
    return int(total_ms) + (int(count) + len(edges)) * pace_ms


def _of_gpus(query: "Select[Any]", table: Table, node: str, when: ColumnElement[bool]) -> "Select[Any]":
    of_gpu = and_(table.c.subject == subjects.c.id, subjects.c.node == node, subjects.c.gpu != "")
    return query.select_from(table).join(subjects, of_gpu).where(when)
