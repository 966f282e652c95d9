"""An alert that is lowered, raised again, or told its outcome stays one alert, and people hear only what is news."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import create_engine
from tests.server.house import START, House, hello, sample
from tests.server.notify_samples import transition

from oomwatch import wire
from oomwatch.letters import key_of
from oomwatch.rulefile import parse_rules
from oomwatch.service.board import Board
from oomwatch.store.migrate import migrate
from oomwatch.store.store import Batch, Entry, Store
from oomwatch.web.restart import restore

OOM = wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0")
FIRING = transition()
LOWERED = msgspec.structs.replace(FIRING, change="severity", severity="info", lowered_from="warning", at=START + 60)
RAISED = msgspec.structs.replace(FIRING, change="severity", at=START + 90)
ENDED = msgspec.structs.replace(LOWERED, change="state", state="resolved", at=START + 120, reason="recovered")
VERDICT = msgspec.structs.replace(
    ENDED, change="outcome", outcome=wire.Outcome(verdict="false", at=START + 120)
)  # in the same moment
DONE = msgspec.structs.replace(FIRING, change="acts", acts=(wire.Act(act="stacks", at=1.0, node="gpu-07", ok=True),))
STORY = [FIRING, LOWERED, RAISED, msgspec.structs.replace(LOWERED, at=START + 100), ENDED, VERDICT]
FULL = parse_rules(
    """
rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 10s
    summary: "GPU {gpu} of {node} is {value} full"
"""
).rules


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


# ---------------------------------------------------------------- one alert


def board() -> Board:
    return Board(lambda transition: transition)


def test_a_lowered_alert_has_fired_when_it_first_did_on_the_page_and_in_the_store(store: Store) -> None:
    page = board()
    shown = [page.take(one, one.at) for one in STORY[:3]]
    store.append(STORY[:3])
    assert [one and (one.fired_at, one.severity, one.lowered_from) for one in shown] == [
        (FIRING.at, "warning", None),
        (FIRING.at, "info", "warning"),
        (FIRING.at, "warning", None),
    ]
    assert store.alert(FIRING.id) == shown[-1]


def test_an_outcome_is_added_to_an_alert_that_is_over_and_its_end_stays(store: Store) -> None:
    page = board()
    shown = [page.take(one, one.at) for one in STORY][-1]
    store.append(STORY)
    assert shown is not None
    assert (shown.state, shown.ended_at, shown.outcome) == ("resolved", ENDED.at, VERDICT.outcome)
    assert store.alert(FIRING.id) == shown
    assert list(page.ended()) == [shown]


def test_what_is_added_in_the_moment_of_the_end_is_stored_beside_it_and_once(store: Store) -> None:
    store.append(STORY)
    store.append([ENDED, VERDICT])
    assert [one.change for one in store.transitions_of(FIRING.id)] == [one.change for one in STORY]


def test_acts_and_outcome_are_both_kept(store: Store) -> None:
    store.append([FIRING, DONE, msgspec.structs.replace(VERDICT, state="firing")])
    alert = store.alert(FIRING.id)
    assert alert is not None
    assert (alert.acts, alert.outcome, alert.state) == (DONE.acts, VERDICT.outcome, "firing")


def test_an_outcome_of_an_alert_that_the_page_has_forgotten_is_not_shown() -> None:
    assert board().take(VERDICT, VERDICT.at) is None


def test_an_alert_is_found_open_whatever_was_added_to_it(store: Store) -> None:
    store.append([FIRING, LOWERED, msgspec.structs.replace(VERDICT, state="firing", at=START + 70)])
    assert [one.state for one in store.alerts(state="firing")] == ["firing"]
    assert store.alerts(state="resolved") == []


def test_browsers_see_the_outcome_and_it_is_stored() -> None:
    house = House(FULL)
    session, _ = house.connect(hello(run="qwen7b"))
    house.service.reception.take(session, sample(1, 79))
    house.now += 30
    house.service.reception.take(session, wire.Event(seq=2, at=house.now, body=OOM))
    house.flush()
    shown = house.browsers.of(wire.AlertChanged)[-1].alert
    assert shown.outcome == wire.Outcome(verdict="happened", at=house.now, lead_seconds=30.0)
    assert (shown.state, shown.texts["en"].summary) == ("firing", "GPU 0 of gpu-07 is 99 % full")
    assert [one.change for one in house.shelf.transitions] == ["state", "outcome"]


def test_an_open_alert_keeps_its_outcome_when_its_numbers_are_told_again() -> None:
    house = House(FULL)
    session, _ = house.connect(hello(run="qwen7b"))
    house.service.reception.take(session, sample(1, 79))
    house.service.reception.take(session, wire.Event(seq=2, at=house.now, body=OOM))
    house.flush()
    house.wait(8, lambda: house.service.reception.take(session, sample(int(house.now - START) + 3, 75, house.now)))
    (alert,) = house.service.open_alerts()
    assert (alert.value, alert.outcome and alert.outcome.verdict) == (0.9375, "happened")
    assert house.browsers.of(wire.AlertChanged)[-1].alert.outcome is not None


# ---------------------------------------------------------------- restarts and migrations


def test_a_warning_that_was_over_gets_its_verdict_from_the_next_server(store: Store) -> None:
    house = House(FULL)
    session, _ = house.connect(hello(run="qwen7b"))
    house.service.reception.take(session, sample(1, 79))
    house.wait(15, lambda: house.service.reception.take(session, sample(int(house.now - START) + 2, 10, house.now)))
    assert [one.state for one in house.shelf.transitions] == ["firing", "resolved"]
    store.append(house.shelf.transitions)
    store.record(Batch(entries=(Entry(node="gpu-07", session="s1", received_at=START, message=hello(run="qwen7b")),)))

    again = House(FULL, now=house.now)
    restore(again.service, store)
    session, _ = again.connect(hello(run="qwen7b", sent_at=again.now), stored_seq=1)
    again.now += 600
    again.service.reception.take(session, wire.Event(seq=99, at=again.now, body=OOM))
    again.flush()
    first, said = again.shelf.transitions[0], again.browsers.of(wire.AlertChanged)[-1].alert
    assert (first.change, first.state) == ("outcome", "resolved")
    assert said.outcome is not None
    assert (said.outcome.verdict, said.fired_at, said.ended_at) == ("happened", START, house.shelf.transitions[1].at)


def test_an_older_database_keeps_what_was_told_and_delivered(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrate(connection, str(path), "0001")
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        row = (1, FIRING.id, FIRING.alert, "firing", FIRING.at, START, wire.encode(FIRING).decode())
        connection.execute(
            "INSERT INTO transitions (seq, id, alert, state, at, started_at, document) VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        connection.execute("INSERT INTO deliveries (channel, transition) VALUES ('team', 1)")
        connection.commit()
    store = Store.open(f"sqlite:///{path}")
    assert store.transitions_of(FIRING.id) == [FIRING]
    team, other = (store.account(name, [FIRING.id], START + 1000) for name in ("team", "other"))
    assert (team.told, team.standing.known_since) == ({key_of(FIRING): None}, FIRING.at)
    assert (other.told, other.standing.known_since) == ({}, START + 1000)
    store.close()
