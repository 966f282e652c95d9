"""History is merged hour by hour and forgotten when it is old, and neither changes what is read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres.fixtures import on_sqlite

from oomwatch import wire
from oomwatch.letters import Letter
from oomwatch.store.compaction import SUBJECTS_MAX
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0  # a full hour
HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def record(store: Store, seq: int, at: float, gpus: int = 1, node: str = "n1") -> None:
    sample = wire.Sample(
        seq=seq,
        at=at,
        gpus=tuple(wire.GpuSample(gpu=str(gpu), used_bytes=seq) for gpu in range(gpus)),
        host=wire.HostSample(memory_used_bytes=None if seq % 2 else seq),
    )
    event = wire.Event(seq=seq + 1, at=at, run="r", body=wire.Step(step=seq))
    entries = tuple(Entry(node=node, session="s", received_at=at, message=one) for one in (sample, event))
    store.record(Batch(entries=entries))


def chunk_count(store: Store) -> int:
    with store._database.reading() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM chunks").scalar_one())


def unfolded(store: Store) -> int:
    with store._database.reading() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM chunks WHERE NOT folded").scalar_one())


def compact_all(store: Store, now: float) -> int:
    calls = 0
    while store.compact(now):
        calls += 1
    return calls


def test_merging_leaves_one_chunk_an_hour_and_subject_and_changes_no_reading(store: Store) -> None:
    for n in range(120):
        record(store, 2 * n + 1, NOON + 60 * n, gpus=2)
    before = list(store.recent_samples(0.0))
    assert chunk_count(store) == 120 * 3
    compact_all(store, NOON + DAY)
    assert chunk_count(store) == 2 * 3
    assert list(store.recent_samples(0.0)) == before


def test_the_running_hour_and_its_grace_are_left_alone(store: Store) -> None:
    for n in range(4):
        record(store, 2 * n + 1, NOON + n)
    compact_all(store, NOON + HOUR + 899)
    assert unfolded(store) == 2
    compact_all(store, NOON + HOUR + 900)
    assert (chunk_count(store), unfolded(store)) == (2, 0)


def test_ten_minutes_of_the_running_hour_become_one_chunk_and_change_no_reading(store: Store) -> None:
    for n in range(3):
        record(store, 2 * n + 1, NOON + n)
    record(store, 9, NOON + 600)
    before = list(store.recent_samples(0.0))
    assert not store.compact(NOON + 659)
    assert chunk_count(store) == 8
    compact_all(store, NOON + 660)
    assert chunk_count(store) == 4
    assert list(store.recent_samples(0.0)) == before


def test_a_call_ends_when_its_time_is_over_and_the_next_goes_on(store: Store) -> None:
    for n in range(2):
        record(store, 2 * n + 1, NOON + n, gpus=3)
    counts = []
    while store.compact(NOON + DAY, for_seconds=0.0):
        counts.append(chunk_count(store))
    assert counts == [7, 6, 5, *[4] * 5]  # pieces, then the hour, one subject at a time


def test_a_call_that_has_time_goes_through_some_subjects_and_the_next_goes_on(store: Store) -> None:
    for n in range(2):
        record(store, 2 * n + 1, NOON + n, gpus=SUBJECTS_MAX)
    counts = []
    while store.compact(NOON + DAY, for_seconds=3600.0):
        counts.append(chunk_count(store))
    assert counts == [SUBJECTS_MAX + 2, *[SUBJECTS_MAX + 1] * 3]


def test_a_late_sample_opens_a_merged_hour_again(store: Store) -> None:
    for n in range(3):
        record(store, 2 * n + 1, NOON + 10 * n)
    compact_all(store, NOON + DAY)
    record(store, 7, NOON + 5)
    assert chunk_count(store) == 4
    compact_all(store, NOON + DAY)
    assert chunk_count(store) == 2
    assert [one.at - NOON for _, one in store.recent_samples(0.0)] == [0, 5, 10, 20]


def test_pruning_takes_whole_hours_and_events_that_are_too_old(store: Store) -> None:
    record(store, 1, NOON)
    record(store, 3, NOON + HOUR)
    record(store, 5, NOON + 2 * HOUR)
    assert not store.prune(now=NOON + 3.5 * HOUR, keep_seconds=2 * HOUR)
    assert [(one.at - NOON) / HOUR for _, one in store.recent_samples(0.0)] == [1, 2]
    assert [(one.at - NOON) / HOUR for _, one in store.recent_events(0.0)] == [2]


def test_pruning_much_is_done_in_helpings(store: Store) -> None:
    for n in range(5):
        record(store, 2 * n + 1, NOON + HOUR * n)
    calls = 1
    while store.prune(now=NOON + 10 * DAY, keep_seconds=DAY, at_most_rows=3):
        calls += 1
    assert calls == 4  # ten chunks, three at a time
    assert list(store.recent_samples(0.0)) == []
    assert list(store.recent_events(0.0)) == []


def test_pruning_forgets_alerts_that_are_over_with_their_deliveries_and_keeps_open_ones(store: Store) -> None:
    def transition(alert_id: str, state: wire.AlertState, at: float) -> wire.Transition:
        return wire.Transition(
            id=alert_id, alert="full", severity="info", state=state, at=at, started_at=NOON, labels={"node": "n1"}
        )

    store.append([transition("open", "firing", NOON), transition("over", "firing", NOON)])
    store.append([transition("over", "resolved", NOON + 1)])
    covers = tuple((alert, state, at, "state") for alert, state, at in [
        ("open", "firing", NOON), ("over", "firing", NOON), ("over", "resolved", NOON + 1),
    ])  # fmt: skip
    store.keep_letters([Letter("slack", "m1", "i1", "firing", NOON, "{}", covers, "delivered")])
    store.prune(now=NOON + 10 * DAY, keep_seconds=DAY)
    assert [alert.id for alert in store.alerts()] == ["open"]
    assert list(store.account("slack", ["open", "over"], NOON).told) == [covers[0]]
    store.append([transition("new", "firing", NOON + 2)])  # SQLite gives it the number of one that was deleted
    assert store.account("slack", ["new"], NOON).told == {}


def test_pruning_forgets_nodes_runs_and_sessions_that_went_away(store: Store) -> None:
    hello = wire.Hello(
        protocol=1, agent_version="1", node="n1", session="s", sent_at=NOON, interval_seconds=1, facts=wire.NodeFacts()
    )
    store.record(Batch(entries=(Entry(node="n1", session="s", received_at=NOON, message=hello),)))
    record(store, 1, NOON)
    store.prune(now=NOON + HOUR, keep_seconds=60)
    assert store.progress("n1", "s") == 2  # an agent may still have to be told where to go on
    assert len(store.nodes()) == len(store.runs()) == 1
    store.prune(now=NOON + 10 * DAY, keep_seconds=DAY)
    assert (store.nodes(), store.runs(), store.progress("n1", "s")) == ([], [], 0)


def test_pruning_takes_what_is_from_the_future_and_would_never_grow_old(store: Store) -> None:
    hello = wire.Hello(
        protocol=1, agent_version="1", node="n1", session="s", sent_at=NOON, interval_seconds=1, facts=wire.NodeFacts()
    )
    far = NOON + 1000 * DAY
    store.record(Batch(entries=(Entry(node="n1", session="s", received_at=far, message=hello),)))
    record(store, 1, NOON)
    record(store, 3, NOON + HOUR)  # tomorrow at the latest it is the past
    for n in range(5):
        record(store, 5 + 2 * n, far + HOUR * n)
    over = wire.Transition(
        id="a", alert="full", severity="info", state="resolved", at=far, started_at=NOON, labels={"node": "n1"}
    )
    store.append([over])
    while store.prune(now=NOON + 60, keep_seconds=DAY, at_most_rows=3):
        pass
    assert [one.at - NOON for _, one in store.recent_samples(0.0)] == [0, HOUR]
    assert [one.at - NOON for _, one in store.recent_events(0.0)] == [0, HOUR]
    assert store.alerts() == []
    assert [node.last_seen for node in store.nodes()] == [NOON + 60]  # it lives, and is forgotten in its time
    assert [run.last_seen for run in store.runs()] == [NOON + 60]
    assert store.progress("n1", "s") == 14  # what is sent again is still known
    compact_all(store, far + 10 * DAY)
    store.prune(now=NOON + 10 * DAY, keep_seconds=DAY)
    assert (store.nodes(), store.runs(), store.progress("n1", "s")) == ([], [], 0)


def test_the_recent_past_ends_where_it_is_told_to(store: Store) -> None:
    for n in range(4):
        record(store, 2 * n + 1, NOON + n)
    assert [one.at - NOON for _, one in store.recent_samples(NOON + 1, NOON + 2)] == [1, 2]
    assert [one.at - NOON for _, one in store.recent_events(NOON + 1, NOON + 2)] == [1, 2]


def test_a_run_was_seen_when_its_agents_hello_arrived_whatever_time_that_tells(store: Store) -> None:
    hello = wire.Hello(
        protocol=1, agent_version="1", node="n1", session="s", sent_at=1e12, interval_seconds=1,
        facts=wire.NodeFacts(), run="r",
    )  # fmt: skip
    store.record(Batch(entries=(Entry(node="n1", session="s", received_at=NOON, message=hello),)))
    assert [(run.first_seen, run.last_seen) for run in store.runs()] == [(NOON, NOON)]


HELLO = wire.Hello(
    protocol=1, agent_version="1", node="n1", session="s", sent_at=NOON, interval_seconds=1, facts=wire.NodeFacts()
)


def test_a_node_that_a_person_removed_is_not_known_and_its_history_stays(store: Store) -> None:
    store.record(Batch(entries=(Entry(node="n1", session="s", received_at=NOON, message=HELLO),)))
    record(store, 1, NOON)
    store.retire_node("n1", NOON + 60)
    assert store.nodes() == []
    assert store.retired_nodes() == ["n1"]
    assert store.progress("n1", "s") == 2
    assert len(list(store.recent_samples(NOON))) == 1


def test_a_node_that_was_removed_and_is_heard_later_is_back(store: Store) -> None:
    store.record(Batch(entries=(Entry(node="n1", session="s", received_at=NOON, message=HELLO),)))
    store.retire_node("n1", NOON - 1)  # by a server whose clock is behind
    record(store, 1, NOON)  # what another server had yet to store
    assert (store.nodes(), store.retired_nodes()) == ([], ["n1"])
    store.record(Batch(entries=(Entry(node="n1", session="t", received_at=NOON + 5, message=HELLO),)))
    assert ([one.hello for one in store.nodes()], store.retired_nodes()) == ([HELLO], [])


@on_sqlite
def test_a_checkpoint_moves_what_was_stored_from_the_log_into_the_file(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "oomwatch.db"
    for n in range(20):
        record(store, 2 * n + 1, NOON + n)
    before = path.stat().st_size
    store.checkpoint()
    assert path.stat().st_size > before
