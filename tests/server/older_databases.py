"""What older versions wrote, row by row, in the columns that they knew."""

from typing import Any

import msgspec
from sqlalchemy import Connection, MetaData, text

from oomwatch import wire
from oomwatch.core.past import Levels, Past
from oomwatch.store.store import Store

NOON = 1_699_963_200.0
ALERT = wire.Transition(
    id="a2", alert="full", severity="info", state="firing", at=NOON, started_at=NOON, labels={"node": "n1"}
)
_OLDER = msgspec.structs.replace(ALERT, id="a1")
_HELLO = wire.Hello(
    protocol=1, agent_version="0", node="n1", session="s1", sent_at=NOON, interval_seconds=1.0, facts=wire.NodeFacts()
)
_PAST = Past(run="r1", now=Levels(at=NOON, step=1, phases=(), floor_bytes=1.0))
_SILENCE = {
    "id": "i1", "matchers": [{"label": "node", "value": "n1"}], "starts_at": NOON, "ends_at": NOON + 60,
    "created_at": NOON, "created_by": "someone",
}  # fmt: skip


def _text(value: object) -> str:
    return wire.encode(value).decode()  # type: ignore[arg-type]


_TRANSITION = {"id": "a1", "alert": "full", "state": "firing", "at": NOON, "started_at": NOON, "node": "n1"}
_ROWS: dict[str, dict[str, Any]] = {
    "transitions": {"seq": 7, **_TRANSITION, "document": _text(_OLDER)},
    "notices": {
        "seq": 5, "id": "m1", "channel": "team", "incident": "i1", "kind": "firing", "state": "delivered",
        "made_at": NOON, "attempts": 1, "document": '{"news": [{"id": "a1"}]}',
    },
    "deliveries": {"channel": "team", "transition": 7, "notice": 5},
    "channels": {"channel": "team", "known_since": NOON, "health": "ok"},
    "silences": {"id": "i1", "ends_at": NOON + 60, "document": msgspec.json.encode(_SILENCE).decode()},
    "nodes": {
        "node": "n1", "session": "s1", "hello": _text(_HELLO), "simulated": False, "last_seen": NOON, "stopped": False,
    },
    "progress": {"node": "n1", "session": "s1", "seq": 2**40, "seen_at": NOON},
    "runs": {"run": "r1", "node": "n1", "first_seen": NOON, "last_seen": NOON + 9, "simulated": False},
    "pasts": {"run": "r1", "kept_at": NOON, "document": msgspec.json.encode(_PAST).decode()},
    "subjects": {"id": 3, "node": "n1", "gpu": "0"},
    "events": {
        "id": 11, "at": NOON, "node": "n1", "run": "r1", "kind": "step", "backlog": False,
        "body": _text(wire.Step(step=4)),
    },
}  # fmt: skip


_COUNTED = {"transitions": "seq", "notices": "seq", "events": "id", "subjects": "id"}


def fill(connection: Connection) -> None:
    """A row in every table that this schema has, as far as it has the columns."""
    known = MetaData()
    known.reflect(connection)
    for table in known.sorted_tables:
        row = _ROWS.get(table.name)
        if row is not None:
            connection.execute(table.insert(), {name: value for name, value in row.items() if name in table.c})
            _count_on(connection, table.name, row)


def _count_on(connection: Connection, table: str, row: dict[str, Any]) -> None:
    """PostgreSQL's counters do not see numbers that are given."""
    key = _COUNTED.get(table)
    if key is not None and connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT setval(:counter, :value)"), {"counter": f"{table}_{key}_seq", "value": row[key]}
        )


def found_in(store: Store | None) -> dict[str, object]:
    """What is read of it; of None, what should be. Only what the first schema had already."""
    if store is None:
        return {
            "alerts": [_OLDER], "told": ["team"], "nodes": ["n1"], "runs": [("r1", ("n1",), NOON, NOON + 9)],
            "progress": 2**40, "steps": [4],
        }  # fmt: skip
    account = store.account("team", ["a1"], NOON + 100)
    return {
        "alerts": store.open_alerts(),
        "told": [account.standing.channel for key in account.told if key == ("a1", "firing", NOON, "state")],
        "nodes": [one.hello.node for one in store.nodes()],
        "runs": [(one.run, one.nodes, one.first_seen, one.last_seen) for one in store.runs()],
        "progress": store.progress("n1", "s1"),
        "steps": [point.step.step for point in store.steps("r1", 9)],
    }
