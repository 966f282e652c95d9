"""What is known of the agents: the last hello of each node, how far each session got, which runs were seen where."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, case, delete, false, func, select, update

from oomwatch import wire
from oomwatch.store.batch import Entry
from oomwatch.store.rows import either, greater, lesser, pieces, put
from oomwatch.store.schema import nodes, progress, runs

_IS_RETIRED = func.coalesce(nodes.c.retired_at >= nodes.c.last_seen, false())
_hello_decoder = msgspec.json.Decoder(wire.Hello)


class KnownNode(NamedTuple):
    """A node as it was last heard. `stopped`: its agent said bye; `last_seen` is by the server's clock."""

    hello: wire.Hello
    last_seen: float
    stopped: bool


class KnownRun(NamedTuple):
    """A run, the nodes that named it, and the times of the first and last message that did."""

    run: str
    nodes: tuple[str, ...]
    first_seen: float
    last_seen: float
    simulated: bool


class _State(msgspec.Struct):
    """A row of nodes while a batch goes over it."""

    session: str
    hello: str
    run: str | None
    simulated: bool
    last_seen: float
    stopped: bool


def progress_of(connection: Connection, node: str, session: str) -> int:
    """The last stored sequence number of a session; 0 for one that was never stored."""
    where = (progress.c.node == node, progress.c.session == session)
    return connection.scalar(select(progress.c.seq).where(*where)) or 0


def unseen(connection: Connection, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that are not stored yet, so that a batch recorded twice doubles nothing. Hellos always pass.

    Another server that records the same sessions waits here.
    """
    done = _progress(connection, entries)
    fresh = []
    for entry in entries:
        key = (entry.node, entry.session)
        seq = _seq(entry)
        if seq is None or seq > done.get(key, 0):
            fresh.append(entry)
            done[key] = max(seq or 0, done.get(key, 0))
    return fresh


def write(connection: Connection, entries: Sequence[Entry]) -> None:
    """Bring nodes, runs and progress up to these entries."""
    states = _states(connection, entries)
    sightings: dict[tuple[str, str], KnownRun] = {}
    for entry in entries:
        state = _after(states.get(entry.node), entry)
        if state is not None:
            states[entry.node] = state
        _see_run(sightings, entry, state)
    rows = [{"node": node, **msgspec.structs.asdict(state)} for node, state in states.items()]
    put(connection, nodes, rows, {"last_seen": greater})
    _put_runs(connection, sightings)
    _put_progress(connection, entries)


def known_nodes(connection: Connection) -> list[KnownNode]:
    """Every node that is not gone for good, by name."""
    query = select(nodes.c.hello, nodes.c.last_seen, nodes.c.stopped).where(~_IS_RETIRED).order_by(nodes.c.node)
    return [
        KnownNode(_hello_decoder.decode(hello), seen, stopped) for hello, seen, stopped in connection.execute(query)
    ]


def last_seen(connection: Connection, names: Iterable[str]) -> dict[str, float]:
    """When each of these nodes was heard last, by whichever server stored it."""
    found: dict[str, float] = {}
    for some in pieces(names):
        query = select(nodes.c.node, nodes.c.last_seen).where(nodes.c.node.in_(some))
        found.update((row.node, row.last_seen) for row in connection.execute(query))
    return found


def known_runs(connection: Connection) -> list[KnownRun]:
    """Every run, the one that was seen last first."""
    found: dict[str, KnownRun] = {}
    for row in connection.execute(select(runs).order_by(runs.c.run, runs.c.node)):
        seen = KnownRun(row.run, (row.node,), row.first_seen, row.last_seen, row.simulated)
        found[row.run] = _joined(found.get(row.run), seen)
    return sorted(found.values(), key=lambda run: (-run.last_seen, run.run))


def retire(connection: Connection, node: str, now: float) -> None:
    """A node is gone for good. How far its sessions got stays: what it sends again must not be stored twice."""
    gone_at = case((nodes.c.last_seen > now, nodes.c.last_seen), else_=now)
    connection.execute(update(nodes).where(nodes.c.node == node).values(retired_at=gone_at))


def retired(connection: Connection) -> list[str]:
    """Nodes that are gone for good, by name."""
    return list(connection.scalars(select(nodes.c.node).where(_IS_RETIRED).order_by(nodes.c.node)))


def prune(connection: Connection, cutoff: float, now: float, horizon: float) -> None:
    """Forget sessions, runs and nodes that were last heard before `cutoff`; one from after `horizon` was heard now."""
    for seen in (progress.c.seen_at, runs.c.last_seen, nodes.c.last_seen):
        connection.execute(update(seen.table).where(seen > horizon).values({seen.name: now}))
    connection.execute(delete(progress).where(progress.c.seen_at < cutoff))
    connection.execute(delete(runs).where(runs.c.last_seen < cutoff))
    connection.execute(delete(nodes).where(nodes.c.last_seen < cutoff))


def _seq(entry: Entry) -> int | None:
    return None if isinstance(entry.message, wire.Hello) else entry.message.seq


def _progress(connection: Connection, entries: Sequence[Entry]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for sessions in pieces(sorted({entry.session for entry in entries})):
        query = select(progress).where(progress.c.session.in_(sessions)).order_by(progress.c.node, progress.c.session)
        for row in connection.execute(query.with_for_update()):
            found[row.node, row.session] = row.seq
    return found


def _put_progress(connection: Connection, entries: Sequence[Entry]) -> None:
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for entry in entries:
        seq = _seq(entry)
        if seq is not None:
            key = {"node": entry.node, "session": entry.session}
            rows[entry.node, entry.session] = {**key, "seq": seq, "seen_at": entry.received_at}
    put(connection, progress, rows.values(), {"seq": greater, "seen_at": greater})


def _states(connection: Connection, entries: Sequence[Entry]) -> dict[str, _State]:
    found: dict[str, _State] = {}
    for names in pieces(dict.fromkeys(entry.node for entry in entries)):
        query = select(nodes.c.node, *(nodes.c[name] for name in _State.__struct_fields__))
        for node, *values in connection.execute(query.where(nodes.c.node.in_(names))):
            found[node] = _State(*values)
    return found


def _after(state: _State | None, entry: Entry) -> _State | None:
    """The node after one more message; None where the node has never introduced itself."""
    message = entry.message
    if isinstance(message, wire.Hello):
        text = wire.encode(message).decode()
        last_seen = max(entry.received_at, state.last_seen if state else 0.0)
        # Nobody says hello after the bye of a session: one that seems to was recorded before.
        stopped = state is not None and state.stopped and state.session == entry.session
        return _State(entry.session, text, message.run, message.simulated, last_seen, stopped)
    if state is None:
        return None
    last_seen = max(state.last_seen, entry.received_at)
    # The bye of an older agent that another has already replaced says nothing of the node.
    stopped = state.stopped or (isinstance(message, wire.Bye) and entry.session == state.session)
    return msgspec.structs.replace(state, last_seen=last_seen, stopped=stopped)


def _see_run(sightings: dict[tuple[str, str], KnownRun], entry: Entry, state: _State | None) -> None:
    message = entry.message
    run = message.run if isinstance(message, wire.Event) else None
    run = run or (state.run if state else None)
    if run is None:
        return
    at = entry.received_at if isinstance(message, wire.Hello) else message.at  # by our clock, both
    seen = KnownRun(run, (entry.node,), at, at, simulated=bool(state and state.simulated))
    sightings[run, entry.node] = _joined(sightings.get((run, entry.node)), seen)


def _joined(before: KnownRun | None, now: KnownRun) -> KnownRun:
    if before is None:
        return now
    return KnownRun(
        run=now.run,
        nodes=tuple(dict.fromkeys(before.nodes + now.nodes)),
        first_seen=min(before.first_seen, now.first_seen),
        last_seen=max(before.last_seen, now.last_seen),
        simulated=before.simulated or now.simulated,
    )


def _put_runs(connection: Connection, sightings: Mapping[tuple[str, str], KnownRun]) -> None:
    rows = [
        {"run": run, "node": node, "first_seen": one.first_seen, "last_seen": one.last_seen, "simulated": one.simulated}
        for (run, node), one in sightings.items()
    ]
    put(connection, runs, rows, {"first_seen": lesser, "last_seen": greater, "simulated": either})
