"""Transitions, and the alerts that they add up to."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, Select, and_, delete, func, or_, select

from oomwatch import wire
from oomwatch.store.locks import APPENDING, lock
from oomwatch.store.rows import add, matching, pieces
from oomwatch.store.schema import transitions
from oomwatch.story import alert_of

FIRED_MAX = 100_000  # of one question; some seconds
_decoder = msgspec.json.Decoder(wire.Transition)


class FiredAlert(msgspec.Struct, frozen=True):
    """As much of a wire.Transition as matchers see."""

    alert: str
    severity: wire.Severity
    at: float
    labels: dict[str, str]


_fired_decoder = msgspec.json.Decoder(FiredAlert)


def append(connection: Connection, new: Sequence[wire.Transition]) -> None:
    """Store transitions that are not there yet, in their order."""
    if new:
        lock(connection, APPENDING)
        add(connection, transitions, [_row(transition) for transition in new])


def since(connection: Connection, seq: int, limit: int) -> list[tuple[int, wire.Transition]]:
    """(seq, transition) of those after `seq`, in their order; at most so many.

    Who asks again from the last seq that it was given misses none, whichever server stored it: appending waits for the
    lock, and so no transition becomes visible before one with a lower seq.
    """
    query = select(transitions.c.seq, transitions.c.document).where(transitions.c.seq > seq)
    rows = connection.execute(query.order_by(transitions.c.seq).limit(limit))
    return [(row.seq, _decoder.decode(row.document)) for row in rows]


def last_seq(connection: Connection) -> int:
    """Of the transition that was stored last; 0 where there is none."""
    return connection.scalar(select(func.max(transitions.c.seq))) or 0


def open_alerts(connection: Connection) -> list[wire.Transition]:
    """The latest transition of each alert that fires, in the order in which they came."""
    return _read(connection, _latest().where(transitions.c.state == "firing").order_by(transitions.c.seq))


def unfinished(connection: Connection, since: float) -> list[wire.Transition]:
    """Every transition of the alerts that fire, and of those that ended since then and have no outcome yet."""
    last = _latest(transitions.c.id).where(
        or_(
            transitions.c.state == "firing",
            and_(transitions.c.state == "resolved", transitions.c.at >= since, transitions.c.change != "outcome"),
        )
    )
    found: list[wire.Transition] = []
    for some in pieces(list(connection.scalars(last.order_by(transitions.c.seq)))):
        query = select(transitions.c.document).where(transitions.c.id.in_(some))
        found += _read(connection, query.order_by(transitions.c.seq))
    return found


def alerts(
    connection: Connection, wanted: Mapping[str, str | None], *, since: float | None, until: float | None, limit: int
) -> list[wire.Alert]:
    """Alerts, the one that started last first, without those that were over by `since` or began after `until`.

    `wanted`: state, node, run and alert, where they matter.
    """
    query = _latest().where(*matching(transitions, wanted))
    if until is not None:
        query = query.where(transitions.c.started_at <= until)
    if since is not None:
        query = query.where(or_(transitions.c.state != "resolved", transitions.c.at >= since))
    newest = query.order_by(transitions.c.started_at.desc(), transitions.c.seq.desc()).limit(limit)
    return whole(connection, [transition.id for transition in _read(connection, newest)])


def alert_by_id(connection: Connection, alert_id: str) -> wire.Alert | None:
    """One alert, or None."""
    found = transitions_of(connection, alert_id)
    return alert_of(found)


def transitions_of(connection: Connection, alert_id: str) -> list[wire.Transition]:
    """Every transition of one alert, oldest first."""
    query = select(transitions.c.document).where(transitions.c.id == alert_id)
    return _read(connection, query.order_by(transitions.c.seq))


def fired(connection: Connection, since: float) -> list[FiredAlert]:
    """What began to fire from `since` on; at most FIRED_MAX, the latest."""
    is_fired = and_(transitions.c.state == "firing", transitions.c.change == "state", transitions.c.at >= since)
    query = select(transitions.c.document).where(is_fired)
    newest = query.order_by(transitions.c.seq.desc()).limit(FIRED_MAX)
    return [_fired_decoder.decode(document) for document in connection.scalars(newest)]


def stories(connection: Connection, ids: Sequence[str]) -> list[wire.Transition]:
    """Every transition of these alerts, in the order in which they came."""
    found: list[tuple[int, str]] = []
    for some in pieces(ids):
        query = select(transitions.c.seq, transitions.c.document).where(transitions.c.id.in_(some))
        found += [(row.seq, row.document) for row in connection.execute(query)]
    return [_decoder.decode(document) for _, document in sorted(found)]


def prune(connection: Connection, cutoff: float, horizon: float, at_most_rows: int) -> int:
    """Delete alerts resolved before `cutoff` or after `horizon`, whole, at most so many; returns how many."""
    is_out = or_(transitions.c.at < cutoff, transitions.c.at > horizon)
    over = select(transitions.c.id).where(transitions.c.state == "resolved", is_out)
    ids = connection.scalars(over.order_by(transitions.c.at).limit(at_most_rows)).all()
    for some in pieces(ids):
        connection.execute(delete(transitions).where(transitions.c.id.in_(some)))
    return len(ids)


def _row(transition: wire.Transition) -> dict[str, object]:
    return {
        "id": transition.id,
        "alert": transition.alert,
        "state": transition.state,
        "at": transition.at,
        "started_at": transition.started_at,
        "change": transition.change,
        "node": transition.labels.get("node"),
        "run": transition.labels.get("run"),
        "document": wire.encode(transition).decode(),
    }


def _latest(column: "Column[str]" = transitions.c.document) -> "Select[Any]":
    last = select(func.max(transitions.c.seq)).group_by(transitions.c.id)
    return select(column).where(transitions.c.seq.in_(last))


def _read(connection: Connection, query: "Select[Any]") -> list[wire.Transition]:
    return [_decoder.decode(document) for document in connection.scalars(query)]


def whole(connection: Connection, ids: Sequence[str]) -> list[wire.Alert]:
    """The alerts of these ids, in their order."""
    built: dict[str, wire.Alert] = {}
    for some in pieces(ids):
        query = select(transitions.c.document).where(transitions.c.id.in_(some))
        found = _read(connection, query.order_by(transitions.c.id, transitions.c.seq))
        for alert_id, together in groupby(found, key=lambda transition: transition.id):
            alert = alert_of(together)
            if alert is not None:
                built[alert_id] = alert
    return [built[alert_id] for alert_id in ids]
