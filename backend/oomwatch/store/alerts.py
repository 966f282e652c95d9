"""Transitions, the alerts that they add up to, and which of them each channel has delivered."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from sqlalchemy import Connection, Select, and_, delete, func, insert, or_, select

from oomwatch import wire
from oomwatch.store.rows import matching, pieces
from oomwatch.store.schema import deliveries, transitions

TransitionKey = tuple[str, str, float]  # id, state, at
_decoder = msgspec.json.Decoder(wire.Transition)


def append(connection: Connection, new: Sequence[wire.Transition]) -> None:
    """Store transitions that are not there yet, in their order."""
    known = set(_sequence_numbers(connection, {transition.id for transition in new}))
    unseen = {key(transition): transition for transition in new if key(transition) not in known}
    if unseen:
        connection.execute(insert(transitions), [_row(transition) for transition in unseen.values()])


def key(transition: wire.Transition) -> TransitionKey:
    """What tells one transition from another."""
    return transition.id, transition.state, transition.at


def open_alerts(connection: Connection) -> list[wire.Transition]:
    """The latest transition of each alert that fires, in the order in which they came."""
    return _read(connection, _latest().where(transitions.c.state == "firing").order_by(transitions.c.seq))


def alerts(
    connection: Connection,
    *,
    state: str | None,
    node: str | None,
    run: str | None,
    since: float | None,
    limit: int,
    alert: str | None,
) -> list[wire.Alert]:
    """Alerts, the one that started last first. `since` leaves out those that were over by then."""
    query = _latest().where(*matching(transitions, {"state": state, "node": node, "run": run, "alert": alert}))
    if since is not None:
        query = query.where(or_(transitions.c.state != "resolved", transitions.c.at >= since))
    newest = query.order_by(transitions.c.started_at.desc(), transitions.c.seq.desc()).limit(limit)
    return _whole(connection, [transition.id for transition in _read(connection, newest)])


def alert_by_id(connection: Connection, alert_id: str) -> wire.Alert | None:
    """One alert, or None."""
    found = transitions_of(connection, alert_id)
    return _alert(found) if found else None


def transitions_of(connection: Connection, alert_id: str) -> list[wire.Transition]:
    """Every transition of one alert, oldest first."""
    query = select(transitions.c.document).where(transitions.c.id == alert_id)
    return _read(connection, query.order_by(transitions.c.seq))


def undelivered(connection: Connection, channel: str, since: float) -> list[wire.Transition]:
    """Transitions from `since` on that a channel has not delivered, oldest first."""
    done = and_(deliveries.c.transition == transitions.c.seq, deliveries.c.channel == channel)
    query = select(transitions.c.document).outerjoin(deliveries, done)
    query = query.where(deliveries.c.transition.is_(None), transitions.c.at >= since)
    return _read(connection, query.order_by(transitions.c.seq))


def mark_delivered(connection: Connection, channel: str, keys: Iterable[TransitionKey]) -> None:
    """Remember what a channel delivered. A transition that was pruned meanwhile is passed over."""
    keys = list(keys)
    numbers = _sequence_numbers(connection, {alert_id for alert_id, _, _ in keys})
    wanted = {numbers[one] for one in keys if one in numbers}
    for some in pieces(sorted(wanted)):
        known = connection.scalars(
            select(deliveries.c.transition).where(deliveries.c.channel == channel, deliveries.c.transition.in_(some))
        ).all()
        new = [{"channel": channel, "transition": seq} for seq in some if seq not in known]
        if new:
            connection.execute(insert(deliveries), new)


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
        "node": transition.labels.get("node"),
        "run": transition.labels.get("run"),
        "document": wire.encode(transition).decode(),
    }


def _latest() -> "Select[str]":
    last = select(func.max(transitions.c.seq)).group_by(transitions.c.id)
    return select(transitions.c.document).where(transitions.c.seq.in_(last))


def _read(connection: Connection, query: "Select[str]") -> list[wire.Transition]:
    return [_decoder.decode(document) for document in connection.scalars(query)]


def _sequence_numbers(connection: Connection, ids: Iterable[str]) -> dict[TransitionKey, int]:
    found: dict[TransitionKey, int] = {}
    for some in pieces(sorted(ids)):
        query = select(transitions.c.id, transitions.c.state, transitions.c.at, transitions.c.seq)
        for alert_id, state, at, seq in connection.execute(query.where(transitions.c.id.in_(some))):
            found[alert_id, state, at] = seq
    return found


def _whole(connection: Connection, ids: Sequence[str]) -> list[wire.Alert]:
    """The alerts of these ids, in their order."""
    built: dict[str, wire.Alert] = {}
    for some in pieces(ids):
        query = select(transitions.c.document).where(transitions.c.id.in_(some))
        found = _read(connection, query.order_by(transitions.c.id, transitions.c.seq))
        for alert_id, together in groupby(found, key=lambda transition: transition.id):
            built[alert_id] = _alert(list(together))
    return [built[alert_id] for alert_id in ids]


def _alert(story: Sequence[wire.Transition]) -> wire.Alert:
    last = story[-1]
    return wire.Alert(
        id=last.id,
        alert=last.alert,
        severity=last.severity,
        state=last.state,
        labels=last.labels,
        started_at=last.started_at,
        texts=last.texts,
        fired_at=next((one.at for one in story if one.state == "firing"), None),
        ended_at=last.at if last.state == "resolved" else None,
        value=last.value,
        limit=last.limit,
        unit=last.unit,
        facts=last.facts,
        simulated=last.simulated,
        reason=last.reason,
    )
