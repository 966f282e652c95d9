"""Several servers write to one PostgreSQL at once: nothing is lost, nothing doubled, and nobody waits for ever."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, text
from tests.server.running_server import until

from oomwatch import wire
from oomwatch.access.person import Session, User
from oomwatch.core.past import Levels, Past
from oomwatch.letters import Standing
from oomwatch.store.people import _begin_session
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0
WRITERS = 3


@pytest.fixture
def stores(postgres_url: str) -> Iterator[list[Store]]:
    opened = [Store.open(postgres_url) for _ in range(WRITERS)]
    yield opened
    for store in opened:
        store.close()


def at_once(acts: Sequence[Callable[[], Any]]) -> None:
    """Each in a thread of its own, all beginning together. Raises what any of them raised."""
    start = threading.Barrier(len(acts))

    def begin(act: Callable[[], Any]) -> None:
        start.wait(60)
        act()

    with ThreadPoolExecutor(len(acts)) as pool:
        for done in [pool.submit(begin, act) for act in acts]:
            done.result(300)


def firing(number: int) -> wire.Transition:
    return wire.Transition(
        id=f"a{number}", alert="full", severity="info", state="firing", at=NOON, started_at=NOON, labels={"node": "n"}
    )


def spoken(seqs: Sequence[int], node: str = "n1", session: str = "s1") -> Batch:
    """A sample and a step for each number: their sequence numbers are 2n - 1 and 2n."""
    hello = wire.Hello(
        protocol=1,
        agent_version="0",
        node=node,
        session=session,
        sent_at=NOON,
        interval_seconds=1.0,
        facts=wire.NodeFacts(),
        run="r",
    )
    said: list[wire.AgentMessage] = [hello]
    for n in seqs:
        said.append(wire.Sample(seq=2 * n - 1, at=NOON + n, gpus=(wire.GpuSample(gpu="0", used_bytes=n),)))
        said.append(wire.Event(seq=2 * n, at=NOON + n, run="r", body=wire.Step(step=n)))
    return Batch(entries=tuple(Entry(node=node, session=session, received_at=NOON, message=one) for one in said))


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    with store._database.reading() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_transitions_that_overlap_are_stored_once_each_and_in_the_order_of_each_writer(stores: list[Store]) -> None:
    def write(store: Store, offset: int) -> None:
        for n in range(0, 60, 3):
            store.append([firing(offset + n + more) for more in range(5)])

    at_once([lambda store=store, n=n: write(store, 30 * n) for n, store in enumerate(stores)])  # type: ignore[misc]
    told = [int(one.id[1:]) for _, one in stores[0].transitions_since(0)]
    assert sorted(told) == list(range(122))
    assert told.index(0) < told.index(20) < told.index(29)  # only the first writer has these


def test_who_follows_the_numbers_sees_every_transition_however_many_write(stores: list[Store]) -> None:
    reader, *writers = stores
    over = threading.Event()
    seen: list[str] = []

    def follow() -> None:
        last, was_over = 0, False
        while not was_over:
            was_over = over.is_set()
            while found := reader.transitions_since(last, limit=7):
                last = found[-1][0]
                seen.extend(one.id for _, one in found)

    def write(store: Store, offset: int) -> None:
        for n in range(100):
            store.append([firing(offset + 2 * n), firing(offset + 2 * n + 1)])

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        at_once([lambda store=store, n=n: write(store, 1000 * n) for n, store in enumerate(writers)])  # type: ignore[misc]
        over.set()
        following.result(300)
    assert len(seen) == len(set(seen)) == 400
    assert reader.last_transition() == reader.transitions_since(0, limit=9999)[-1][0]


def test_what_an_agent_sent_to_two_servers_is_stored_once(stores: list[Store]) -> None:
    """It moved over, and sends again what it has no word of."""

    def write(store: Store) -> None:
        for first in range(1, 100, 10):
            store.record(spoken(range(first, first + 20)))

    at_once([lambda store=store: write(store) for store in stores])  # type: ignore[misc]
    used = [one.gpus[0].used_bytes for _, one in stores[0].recent_samples(0.0)]
    assert used == list(range(1, 111))
    assert rows(stores[0], "SELECT count(*), count(DISTINCT body) FROM events") == [(110, 110)]
    assert stores[0].progress("n1", "s1") == 220


def test_many_nodes_at_several_servers_are_all_kept(stores: list[Store]) -> None:
    """Every server has the same subjects, runs and hours to make, and meets the others there."""

    def write(store: Store, mine: int) -> None:
        for n in range(1, 11):
            entries = [
                entry
                for node in range(8)
                for entry in spoken([n], node=f"n{(node * 5 + mine) % 8}", session=f"s{node}-{mine}").entries
            ]
            store.record(Batch(entries=tuple(entries)))

    at_once([lambda store=store, n=n: write(store, n) for n, store in enumerate(stores)])  # type: ignore[misc]
    assert [one.hello.node for one in stores[0].nodes()] == [f"n{n}" for n in range(8)]
    (run,) = stores[0].runs()
    assert (run.nodes, run.first_seen, run.last_seen) == (tuple(f"n{n}" for n in range(8)), NOON, NOON + 10)
    assert rows(stores[0], "SELECT count(*) FROM events") == [(WRITERS * 8 * 10,)]
    assert rows(stores[0], "SELECT count(*) FROM progress") == [(WRITERS * 8,)]
    assert rows(stores[0], "SELECT count(*) FROM subjects") == [(8,)]


def test_what_is_merged_meanwhile_loses_nothing_that_comes_late(stores: list[Store]) -> None:
    merger, *writers = stores
    for n in range(1, 41):
        merger.record(spoken([n], node="n1", session="s0"))

    def merge() -> None:
        for _ in range(200):
            merger.compact(NOON + 86_400)

    def write(store: Store, mine: int) -> None:
        for n in range(41, 81):
            store.record(spoken([2 * n + mine], node="n1", session=f"s{mine + 1}"))

    at_once([merge, *(lambda store=store, n=n: write(store, n) for n, store in enumerate(writers))])
    used = [one.gpus[0].used_bytes for _, one in merger.recent_samples(0.0)]
    assert used == [*range(1, 41), *range(82, 162)]


def test_silences_pasts_and_channels_of_several_servers_are_all_kept(stores: list[Store]) -> None:
    def write(store: Store, mine: int) -> None:
        for n in range(20):
            store.keep_pasts([Past(run=f"r{(n * 7 + mine) % 20}", now=_levels(n))], NOON + n)
            store.keep_letters([], [Standing(f"c{(n * 3 + mine) % 20}", NOON + n)])
            store.account(f"d{n}", [], NOON)
            store.beat(f"b{mine}", "x", NOON)

    at_once([lambda store=store, n=n: write(store, n) for n, store in enumerate(stores)])  # type: ignore[misc]
    assert sorted(past.run for past in stores[0].pasts()) == sorted(f"r{n}" for n in range(20))
    assert rows(stores[0], "SELECT count(*) FROM channels") == [(40,)]
    assert len(stores[0].members()) == WRITERS


def test_two_that_would_wait_for_each_other_are_both_served(stores: list[Store]) -> None:
    first, second, _ = stores
    for run in ("a", "b"):
        first.keep_pasts([Past(run=run, now=_levels(1))], NOON)
    both_have_one, attempts = threading.Barrier(2), [0, 0]

    def crossed(connection: Connection, mine: int) -> None:
        attempts[mine] += 1
        for index, run in enumerate(("a", "b")[:: 1 if mine else -1]):
            connection.execute(text("UPDATE pasts SET kept_at = kept_at + 1 WHERE run = :run"), {"run": run})
            if index == 0 and attempts[mine] == 1:
                both_have_one.wait(60)

    at_once([lambda: first._database.write(crossed, 0), lambda: second._database.write(crossed, 1)])
    assert rows(first, "SELECT run, kept_at FROM pasts ORDER BY run") == [("a", NOON + 2), ("b", NOON + 2)]
    assert sum(attempts) > 2


def _levels(step: int) -> Levels:
    return Levels(at=NOON, step=step, phases=(), floor_bytes=1.0)


LIN = User(name="lin", role="reader", password="of old", created_at=1.0, changed_at=1.0)
SESSION = Session(id="s", digest="d", name="lin", role="reader", door="password", created_at=3.0, used_at=3.0)


def _wait_for_a_lock(store: Store, what: "Future[None]") -> None:
    """Until a writer waits for another one, or has gone past it."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    until("the second writer", lambda: what.done() or rows(store, query) == [(1,)])


def test_a_password_that_is_changed_at_another_server_while_somebody_signs_in_ends_that_session(
    stores: list[Store],
) -> None:
    here, there, looker = stores
    here.people.keep_user(LIN)
    changed = msgspec.structs.replace(LIN, password="of today", changed_at=2.0)
    with ThreadPoolExecutor(1) as pool:
        with here._database.writing() as connection:
            assert _begin_session(connection, SESSION, LIN)
            changing = pool.submit(there.people.keep_user, changed)
            _wait_for_a_lock(looker, changing)
        changing.result(60)
    assert looker.people.sessions() == []
    assert not here.people.begin_session(SESSION, LIN)
