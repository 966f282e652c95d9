"""One of several servers holds the lease, and loses it with its connection."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest
from sqlalchemy import make_url
from tests.postgres.line import line_to
from tests.postgres.server import PostgresServer

from oomwatch.store.errors import StoreError
from oomwatch.store.lease import Lease
from oomwatch.store.locks import Key
from oomwatch.store.store import Store

_TERMINATE = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@pytest.fixture
def leases(postgres_url: str) -> Iterator[tuple[Lease, Lease]]:
    pair = (Lease(postgres_url), Lease(postgres_url))
    yield pair
    for lease in pair:
        lease.close()


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)  # between two questions
    return False


def test_one_has_it_until_it_lets_go(leases: tuple[Lease, Lease]) -> None:
    first, second = leases
    assert (first.is_held(), first.try_take(), first.is_held()) == (False, True, True)
    assert first.try_take()  # again: it is ours
    assert (second.try_take(), second.is_held()) == (False, False)
    first.release()
    assert (first.is_held(), second.try_take()) == (False, True)


def test_leases_of_other_names_and_other_databases_are_others(
    leases: tuple[Lease, Lease], postgres_url: str, empty_postgres_url: str
) -> None:
    assert leases[0].try_take()
    with ExitStack() as stack:
        for other in (Lease(postgres_url, Key(99)), Lease(empty_postgres_url)):
            stack.callback(other.close)
            assert other.try_take()


def test_one_whose_connection_was_ended_has_it_no_more_and_another_takes_it(
    leases: tuple[Lease, Lease], postgres_url: str
) -> None:
    first, second = leases
    assert first.try_take()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert connection.execute(_TERMINATE).fetchone() == (1,)
    assert within(30, second.try_take)
    assert not first.is_held()
    assert not first.try_take()
    second.release()
    assert first.try_take()


def test_one_whose_line_died_and_postgresql_did_not_notice_has_it_back_at_once(
    leases: tuple[Lease, Lease], postgres_url: str
) -> None:
    port = make_url(postgres_url).port
    assert port is not None
    with line_to(port) as line:
        first = Lease(make_url(postgres_url).set(port=line.port).render_as_string(hide_password=False))
        assert first.try_take()
        line.cut()
        assert not first.is_held()
        assert not leases[1].try_take()  # PostgreSQL keeps it for the dead session
        assert within(30, first.try_take)
        assert (first.is_held(), leases[1].try_take()) == (True, False)
        first.release()
        assert within(30, leases[1].try_take)
        assert not first.try_take()
        assert leases[1].is_held()
        first.close()


def test_with_postgresql_it_is_gone_and_whoever_asks_first_has_it(own_server: PostgresServer) -> None:
    first, second = Lease(own_server.url), Lease(own_server.url)
    assert first.try_take()
    own_server.stop("immediate")
    assert not first.is_held()
    with pytest.raises(StoreError, match=r"127\.0\.0\.1.*PostgreSQL does not listen there"):
        second.try_take()
    own_server.start()
    assert second.try_take()
    assert not first.try_take()
    for lease in (first, second):
        lease.close()


def test_a_postgresql_that_hangs_is_waited_for_for_seconds_only(own_server: PostgresServer) -> None:
    lease = Lease(own_server.url)
    assert lease.try_take()
    own_server.pause()
    begin = time.monotonic()
    assert not lease.is_held()
    with pytest.raises(StoreError, match="timeout"):
        lease.try_take()
    assert time.monotonic() - begin < 30  # 3 and 2 on a machine with nothing else to do
    own_server.go_on()
    lease.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:////tmp/x.db"])
def test_only_postgresql_can_be_shared(url: str) -> None:
    with pytest.raises(StoreError, match="only PostgreSQL can be shared"):
        Lease(url)


def test_who_is_alive_is_known_by_the_clock_of_the_database(database_url: str) -> None:
    store = Store.open(database_url)
    store.beat("b", "10.0.0.2:8080", 200.5)
    store.beat("a", "10.0.0.1:8080", 100.5)
    store.beat("b", "10.0.0.3:8080", 300.5)
    found = store.members()
    assert [one[:3] for one in found] == [("a", "10.0.0.1:8080", 100.5), ("b", "10.0.0.3:8080", 300.5)]
    assert all(-1 < one.seen_seconds_ago < 60 for one in found)
    store.leave("b")
    assert [one.replica for one in store.members()] == ["a"]
    store.close()
