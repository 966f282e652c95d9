"""The outbox: messages to channels, which transitions each tells of, and what became of it.

A message and the transitions that it tells of are written in one transaction. Where a message was given up for good,
its transitions count as told to nobody.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from oomwatch import wire
from oomwatch.letters import Account, Letter, Standing, TransitionKey
from oomwatch.store.rows import pieces, put
from oomwatch.store.schema import channels, deliveries, notices, transitions

WAITING, FAILED = "waiting", "failed"
WAITING_KEEP_SECONDS = 86_400.0  # how much longer what waits is kept
_CHANGING = ("state", "attempts", "done_at", "error", "receipt", "document")  # a message that failed may be said anew


class _Named(msgspec.Struct):
    id: str


class _News(msgspec.Struct):
    """As much of a message as says which alerts it is about."""

    news: tuple[_Named, ...]


_news = msgspec.json.Decoder(_News)
_LETTER = tuple(notices.c[name] for name in Letter._fields if name != "covers")


def keep(connection: Connection, letters: Sequence[Letter], standings: Sequence[Standing] = ()) -> None:
    """Write messages that are new, and what became of others. What is written already is brought up to date."""
    for letter in letters:
        row = {name: value for name, value in letter._asdict().items() if name != "covers"}
        query = select(notices.c.seq, notices.c.state, (notices.c.document == letter.document).label("is_same"))
        mine = query.where(notices.c.channel == letter.channel, notices.c.id == letter.id)
        known = connection.execute(mine.with_for_update()).first()
        if known is None:
            (seq,) = connection.execute(insert(notices).values(row)).inserted_primary_key or (None,)
        else:
            seq = known.seq
            if (known.state, letter.state) == ("delivered", WAITING):
                continue  # written late: it has arrived by now
            # Of a thousand alerts a message is megabytes, and an attempt changes nothing in it.
            changes = {name: row[name] for name in _CHANGING if name != "document" or not known.is_same}
            connection.execute(update(notices).where(notices.c.seq == seq).values(changes))
        _cover(connection, letter.channel, cast("int", seq), letter.covers)
    for standing in standings:
        _stand(connection, standing)


def _cover(connection: Connection, channel: str, seq: int, covers: Sequence[TransitionKey]) -> None:
    """The channel is told of these by this message, and not by an earlier one that was given up."""
    wanted = sorted(set(_sequence_numbers(connection, covers)))
    for some in pieces(wanted):
        mine = and_(deliveries.c.channel == channel, deliveries.c.transition.in_(some))
        connection.execute(delete(deliveries).where(mine))
        connection.execute(insert(deliveries), [{"channel": channel, "transition": one, "notice": seq} for one in some])


def _sequence_numbers(connection: Connection, covers: Sequence[TransitionKey]) -> list[int]:
    """Of those that are stored: what was pruned meanwhile, or could not be stored, is passed over."""
    keys = set(covers)
    columns = (transitions.c.id, transitions.c.state, transitions.c.at, transitions.c.change, transitions.c.seq)
    found: list[int] = []
    for some in pieces(sorted({key[0] for key in keys})):
        rows = connection.execute(select(*columns).where(transitions.c.id.in_(some)))
        found += [row.seq for row in rows if (row.id, row.state, row.at, row.change) in keys]
    return found


def _stand(connection: Connection, standing: Standing) -> None:
    put(connection, channels, [standing._asdict()])


# ---------------------------------------------------------------- reading


def stories(connection: Connection, since: float, unjudged_since: float) -> list[str]:
    """Ids of the alerts that fire, of those with a transition `since` then, and of those that ended after
    `unjudged_since` and have no verdict yet."""
    last = select(func.max(transitions.c.seq)).group_by(transitions.c.id)
    unjudged = and_(transitions.c.at >= unjudged_since, transitions.c.change != "outcome")
    wanted = or_(transitions.c.state == "firing", transitions.c.at >= since, unjudged)
    query = select(transitions.c.id).where(transitions.c.seq.in_(last), wanted)
    return list(connection.scalars(query.order_by(transitions.c.seq)))


def _standing(connection: Connection, channel: str, now: float) -> Standing:
    """Of a channel, which is known from now on if it was not."""
    row = connection.execute(select(channels).where(channels.c.channel == channel)).first()
    if row is not None:
        return Standing(**row._asdict())
    new = Standing(channel, now)
    _stand(connection, new)
    return new


def account(connection: Connection, channel: str, alert_ids: Sequence[str], now: float) -> Account:
    """What a channel was told of these alerts, and what is on its way to it. An unknown one is known from now on."""
    of = _standing(connection, channel, now)
    told = _told(connection, of.channel, alert_ids)
    waiting = _letters(connection, notices.c.channel == of.channel, notices.c.state == WAITING)
    incidents = sorted({incident for incident in told.values() if incident} | {one.incident for one in waiting})
    last, receipts = _incidents(connection, of.channel, incidents)
    return Account(of, told, waiting, last, receipts)


def _told(connection: Connection, channel: str, alert_ids: Iterable[str]) -> dict[TransitionKey, str | None]:
    """By transition, the incident of the message; None for those that older versions told of."""
    told: dict[TransitionKey, str | None] = {}
    key = (transitions.c.id, transitions.c.state, transitions.c.at, transitions.c.change)
    whole = deliveries.join(transitions, deliveries.c.transition == transitions.c.seq).outerjoin(notices)
    arrived = or_(notices.c.state.is_(None), notices.c.state != FAILED)
    for some in pieces(alert_ids):
        query = select(*key, notices.c.incident).select_from(whole)
        query = query.where(deliveries.c.channel == channel, transitions.c.id.in_(some), arrived)
        for alert_id, state, at, change, incident in connection.execute(query):
            told[alert_id, state, at, change] = incident
    return told


def _incidents(
    connection: Connection, channel: str, incidents: Sequence[str]
) -> tuple[dict[str, Letter], dict[str, str]]:
    """The last message of each incident that was no mere update, and what its first message gave."""
    last: dict[str, Letter] = {}
    receipts: dict[str, str] = {}
    for some in pieces(incidents):
        mine = and_(notices.c.channel == channel, notices.c.incident.in_(some), notices.c.state != FAILED)
        loud = select(func.max(notices.c.seq)).where(mine, notices.c.kind != "update").group_by(notices.c.incident)
        last |= {one.incident: one for one in _letters(connection, notices.c.seq.in_(loud))}
        given = select(notices.c.incident, notices.c.receipt).where(mine, notices.c.receipt.is_not(None))
        receipts |= {row.incident: row.receipt for row in connection.execute(given.order_by(notices.c.seq))}
    return last, receipts


def _letters(connection: Connection, *conditions: Any) -> list[Letter]:  # noqa: ANN401 - SQLAlchemy's column elements
    """Messages, oldest first, without what they cover: that is written."""
    query = select(*_LETTER).where(*conditions).order_by(notices.c.seq)
    return [Letter(**row._asdict()) for row in connection.execute(query)]


def deliveries_of(connection: Connection, alert_id: str) -> list[wire.Delivery]:
    """Every message that told of an alert, or is to, oldest first."""
    known = select(notices.c.channel, notices.c.incident).join(deliveries, deliveries.c.notice == notices.c.seq)
    known = known.join(transitions, deliveries.c.transition == transitions.c.seq)
    rows = connection.execute(known.where(transitions.c.id == alert_id).distinct())
    incidents = {(row.channel, row.incident) for row in rows}
    found: list[Letter] = []
    for channel, incident in sorted(incidents):
        found += _letters(connection, notices.c.channel == channel, notices.c.incident == incident)
    about = [one for one in found if alert_id in _news_of(one)]
    return [_delivery(one) for one in sorted(about, key=lambda one: (one.made_at, one.channel))]


def _news_of(letter: Letter) -> set[str]:
    return {one.id for one in _news.decode(letter.document).news}


def _delivery(letter: Letter) -> wire.Delivery:
    return wire.Delivery(
        id=letter.id,
        channel=letter.channel,
        kind=letter.kind,
        state=letter.state,
        made_at=letter.made_at,
        attempts=letter.attempts,
        done_at=letter.done_at,
        error=letter.error,
    )


def prune(connection: Connection, cutoff: float, horizon: float, at_most_rows: int) -> int:
    """Delete messages made before `cutoff` or after `horizon`; returns how many.

    What waits, perhaps for a channel that is no more, goes only when it is a day older.
    """
    is_out = or_(notices.c.made_at < cutoff, notices.c.made_at > horizon)
    is_idle = or_(notices.c.state != WAITING, notices.c.made_at < cutoff - WAITING_KEEP_SECONDS)
    over = select(notices.c.seq).where(is_idle, is_out)
    numbers = connection.scalars(over.order_by(notices.c.seq).limit(at_most_rows)).all()
    for some in pieces(numbers):
        connection.execute(delete(notices).where(notices.c.seq.in_(some)))
    return len(numbers)
