"""Events in the database, and what is read from them: the steps of a run and single figures over time."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, or_, select, update

from oomwatch import wire
from oomwatch.store.rows import matching, pieces
from oomwatch.store.schema import events, runs

_body_decoder: msgspec.json.Decoder[wire.EventBody] = msgspec.json.Decoder(wire.EventBody)
_origin_decoder = msgspec.json.Decoder(wire.Origin)
_step_decoder = msgspec.json.Decoder(wire.Step)
_torch_decoder = msgspec.json.Decoder(wire.TorchMemory)
Body = TypeVar("Body", wire.Step, wire.TorchMemory)


def write(connection: Connection, said: Iterable[tuple[str, wire.Event]]) -> None:
    """Store (node, event) pairs. What was stored under a name that stood for a run is the run's from now on."""
    told = list(said)
    if told:
        connection.execute(insert(events), [_row(node, event) for node, event in told])
    for _, event in told:
        if isinstance(event.body, wire.RunNamed) and event.run is not None:
            _rename(connection, event.body.provisional, event.run)


def _rename(connection: Connection, provisional: str, name: str) -> None:
    connection.execute(update(events).where(events.c.run == provisional).values(run=name))
    known = select(runs.c.node).where(runs.c.run == name)
    connection.execute(update(runs).where(runs.c.run == provisional, runs.c.node.not_in(known)).values(run=name))
    connection.execute(delete(runs).where(runs.c.run == provisional))


def recent(
    connection: Connection, since: float, until: float, kinds: Collection[str] | None
) -> list[tuple[str, wire.Event]]:
    """(node, event) from `since` to `until` in the order of time; `kinds` are the only ones wanted, None is all."""
    query = select(events).where(events.c.at.between(since, until)).order_by(events.c.at, events.c.id)
    if kinds is not None:
        query = query.where(events.c.kind.in_(kinds))
    return [(row["node"], _event(row)) for row in connection.execute(query).mappings()]


def steps(connection: Connection, run: str, limit: int) -> list[wire.StepPoint]:
    """The last steps of a run, oldest first.

    An agent that starts anew reads the log from its beginning and sends every step again, as backlog. A step whose
    every figure is the same is the same step, and counts from when it was first read.
    """
    query = (
        _distinct_steps({"run": run}).order_by(func.min(events.c.at).desc(), func.min(events.c.id).desc()).limit(limit)
    )
    found = [wire.StepPoint(at=at, step=_step_decoder.decode(body)) for at, body in connection.execute(query)]
    return found[::-1]


def step_figures(
    connection: Connection, field: str, labels: Mapping[str, str], start: float, end: float
) -> Iterator[tuple[list[int], list[float]]]:
    """(milliseconds, values) of one field of the steps that have it, each step once."""
    first = func.min(events.c.at)
    query = _distinct_steps(labels).having(first.between(start, end)).order_by(first)
    return _figures(connection, query, field, _step_decoder)


def torch_figures(
    connection: Connection, field: str, labels: Mapping[str, str], start: float, end: float
) -> Iterator[tuple[list[int], list[float]]]:
    """(milliseconds, values) of one field of torch's allocator."""
    query = select(events.c.at, events.c.body).where(events.c.kind == "torch_memory", *matching(events, labels))
    query = query.where(events.c.at.between(start, end)).order_by(events.c.at)
    return _figures(connection, query, field, _torch_decoder)


def prune(connection: Connection, cutoff: float, horizon: float, at_most_rows: int) -> int:
    """Delete events from before `cutoff` or after `horizon`, oldest first, at most so many; returns how many."""
    old = (
        select(events.c.id)
        .where(or_(events.c.at < cutoff, events.c.at > horizon))
        .order_by(events.c.at)
        .limit(at_most_rows)
    )
    ids = connection.scalars(old).all()
    for some in pieces(ids):
        connection.execute(delete(events).where(events.c.id.in_(some)))
    return len(ids)


def _row(node: str, event: wire.Event) -> dict[str, object]:
    return {
        "at": event.at,
        "node": node,
        "run": event.run,
        "kind": str(event.body.__struct_config__.tag),
        "gpu": getattr(event.body, "gpu", None),
        "backlog": event.backlog,
        "origin": None if event.origin is None else wire.encode(event.origin).decode(),
        "body": wire.encode(event.body).decode(),
    }


def _event(row: RowMapping) -> wire.Event:
    return wire.Event(
        seq=0,
        at=row["at"],
        body=_body_decoder.decode(row["body"]),
        run=row["run"],
        origin=None if row["origin"] is None else _origin_decoder.decode(row["origin"]),
        backlog=row["backlog"],
    )


def _distinct_steps(labels: Mapping[str, str]) -> "Select[Any]":
    query = select(func.min(events.c.at), events.c.body).where(events.c.kind == "step", *matching(events, labels))
    return query.group_by(events.c.body)


def _figures(
    connection: Connection, query: "Select[Any]", field: str, decoder: msgspec.json.Decoder[Body]
) -> Iterator[tuple[list[int], list[float]]]:
    for some in pieces(connection.execute(query)):
        known = [(round(at * 1000), getattr(decoder.decode(body), field)) for at, body in some]
        present = [(at_ms, value) for at_ms, value in known if value is not None]
        yield [at_ms for at_ms, _ in present], [value for _, value in present]
