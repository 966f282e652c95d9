"""Transitions are stored once, and add up to alerts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch.store.store import Store

FULL, HOT = "full", "hot"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def words(summary: str) -> wire.AlertText:
    return wire.AlertText(summary=summary, description="why")


def transition(alert_id: str, state: wire.AlertState, at: float, **fields: object) -> wire.Transition:
    values: dict[str, object] = {
        "alert": FULL, "severity": "critical", "started_at": 100.0, "labels": {"node": "n1", "gpu": "0"},
        "texts": {"en": words(f"{state} at {at}")},
    }  # fmt: skip
    return wire.Transition(id=alert_id, state=state, at=at, **{**values, **fields})  # type: ignore[arg-type]


def test_a_transition_comes_back_with_everything_it_said(store: Store) -> None:
    said = transition(
        "a", "resolved", 130.25, value=0.97, limit=0.9, unit="ratio", reason="recovered", simulated=True,
        facts={"used_bytes": 7, "growth": 0.5, "phase": "rollout"},
        texts={"zh": wire.AlertText(summary="显存", description="快满了", advice=("调小", "重启"))},
    )  # fmt: skip
    store.append([said])
    assert store.transitions_of("a") == [said]


def test_appending_again_doubles_nothing_and_keeps_the_first_words(store: Store) -> None:
    firing = transition("a", "firing", 110.0)
    store.append([transition("a", "pending", 100.0), firing])
    store.append([transition("a", "firing", 110.0, value=3.0), transition("a", "resolved", 120.0)])
    assert [one.state for one in store.transitions_of("a")] == ["pending", "firing", "resolved"]
    assert store.transitions_of("a")[1] == firing


def test_a_transition_given_twice_in_one_call_is_stored_once(store: Store) -> None:
    store.append([transition("a", "firing", 110.0)] * 2)
    assert len(store.transitions_of("a")) == 1


def test_open_alerts_are_those_whose_latest_transition_fires(store: Store) -> None:
    store.append([transition("over", "firing", 110.0), transition("open", "firing", 111.0)])
    store.append([transition("over", "resolved", 112.0), transition("waiting", "pending", 113.0)])
    store.append([transition("open", "firing", 114.0, value=9.0)])
    assert store.open_alerts() == [transition("open", "firing", 114.0, value=9.0)]


def test_an_alert_is_built_from_its_transitions(store: Store) -> None:
    store.append([transition("a", "pending", 100.0), transition("a", "firing", 110.0, value=1.0)])
    store.append([transition("a", "firing", 115.0, value=2.0), transition("a", "resolved", 120.0, reason="recovered")])
    assert store.alert("a") == wire.Alert(
        id="a", alert=FULL, severity="critical", state="resolved", labels={"node": "n1", "gpu": "0"}, started_at=100.0,
        texts={"en": words("resolved at 120.0")}, fired_at=110.0, told_at=110.0, ended_at=120.0, reason="recovered",
    )  # fmt: skip


def test_an_alert_that_is_still_open_has_not_ended_and_an_unknown_one_is_none(store: Store) -> None:
    store.append([transition("a", "firing", 110.0)])
    found = store.alert("a")
    assert found is not None
    assert (found.fired_at, found.ended_at) == (110.0, None)
    assert store.alert("b") is None


def test_alerts_come_newest_first_up_to_the_limit(store: Store) -> None:
    store.append([transition(f"a{n}", "firing", 200.0, started_at=float(n)) for n in (2, 0, 3, 1)])
    assert [alert.id for alert in store.alerts()] == ["a3", "a2", "a1", "a0"]
    assert [alert.id for alert in store.alerts(limit=2)] == ["a3", "a2"]


def test_alerts_are_filtered_by_state_node_run_name_and_time(store: Store) -> None:
    store.append([transition("open", "firing", 110.0, labels={"node": "n2"}, alert=HOT, started_at=1.0)])
    store.append(
        [transition("old", "firing", 110.0, started_at=2.0), transition("old", "resolved", 120.0, started_at=2.0)]
    )
    store.append([transition("new", "firing", 110.0, labels={"run": "r"}, started_at=3.0)])
    store.append([transition("new", "resolved", 130.0, labels={"run": "r"}, started_at=3.0)])
    assert [alert.id for alert in store.alerts(state="firing")] == ["open"]
    assert [alert.id for alert in store.alerts(state="resolved", run="r")] == ["new"]
    assert [alert.id for alert in store.alerts(node="n1")] == ["old"]
    assert [alert.id for alert in store.alerts(alert=HOT)] == ["open"]
    assert [alert.id for alert in store.alerts(since=125.0)] == ["new", "open"]


def test_more_alerts_than_one_query_names_are_found(store: Store) -> None:
    store.append([transition(f"a{n:04}", "firing", 200.0, started_at=float(n)) for n in range(1200)])
    assert [alert.id for alert in store.alerts(limit=1200)] == [f"a{n:04}" for n in reversed(range(1200))]


def test_what_was_stored_is_there_after_closing_and_opening(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/again.db"
    first = Store.open(url)
    first.append([transition("a", "firing", 110.0)])
    first.close()
    second = Store.open(url)
    assert second.open_alerts() == [transition("a", "firing", 110.0)]
    second.close()
