"""What is killed and cut: a server alone with SQLite, and three that share PostgreSQL and NATS."""

import contextlib
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psycopg
from tests.acceptance.programs import until
from tests.acceptance.several import Replica, rules_told_to, three_servers, within
from tests.chaos.proxy import Way, way_to
from tests.nats.server import NatsServer
from tests.postgres.server import PostgresServer

STORED = (
    "SELECT node, id, state, count(*) FROM transitions WHERE change = 'state' GROUP BY node, id, state "
    "ORDER BY node, id, state"
)
START_SECONDS = 120.0  # amid blows
Row = tuple[str, str, str, int]  # node, id of the alert, state, how often


class Blow(NamedTuple):
    """Something that is done to one place of the site, one at a time, and taken back after a while."""

    name: str
    place: str
    strike: Callable[[], object]
    mend: Callable[[], object]
    longest_seconds: float


class Site(NamedTuple):
    """`way` is how everybody comes to the servers; `rows` reads what is stored."""

    servers: Sequence[Replica]
    way: Way
    blows: Sequence[Blow]
    rows: Callable[[], list[Row]]


def _server_blows(server: Replica) -> Iterator[Blow]:
    def started() -> None:
        if not server.program.running:
            server.start()

    def told(number: signal.Signals) -> None:
        if server.program.running:
            os.kill(server.program.pid, number)

    def suspended() -> None:
        told(signal.SIGSTOP)

    def woken() -> None:
        told(signal.SIGCONT)

    def killed() -> None:
        server.program.kill()

    yield Blow(f"kill -9 {server.name}", server.name, killed, started, 3.0)
    yield Blow(f"suspend {server.name}", server.name, suspended, woken, 6.0)


def _way_blows(way: Way) -> Iterator[Blow]:
    yield Blow("cut every connection", "way", way.cut, lambda: None, 1.0)
    yield Blow("pass nothing on", "way", lambda: way.silence(on=True), lambda: way.silence(on=False), 8.0)


@contextlib.contextmanager
def alone(folder: Path, receiver_url: str) -> Iterator[Site]:
    server = Replica(folder, rules_told_to(receiver_url, folder), "--flush-interval", "500ms")
    server.start()
    try:
        within(START_SECONDS, "the server is ready", lambda: server.ready()[0] == 200)
        with way_to([server.port]) as way:
            yield Site([server], way, [*_server_blows(server), *_way_blows(way)], lambda: _sqlite_rows(folder))
    finally:
        server.end()


def _sqlite_rows(folder: Path) -> list[Row]:
    with contextlib.closing(sqlite3.connect(folder / "oomwatch.db", timeout=20)) as database:
        return list(database.execute(STORED))


@contextlib.contextmanager
def several(folder: Path, receiver_url: str) -> Iterator[Site]:
    with three_servers(folder, receiver_url) as site, way_to([one.port for one in site.replicas]) as way:
        blows = [blow for server in site.replicas for blow in _server_blows(server)]
        blows += [*_way_blows(way), *_shared_blows(site.postgres, site.nats)]
        yield Site(site.replicas, way, blows, lambda: _postgres_rows(site.db))


def _shared_blows(postgres: PostgresServer, nats: NatsServer) -> Iterator[Blow]:
    yield Blow("stop PostgreSQL", "database", lambda: postgres.stop("immediate"), postgres.start, 4.0)
    yield Blow("suspend PostgreSQL", "database", postgres.pause, postgres.go_on, 6.0)
    yield Blow("kill NATS", "nats", nats.kill, nats.start, 4.0)


def _postgres_rows(database: str) -> list[Row]:
    with psycopg.connect(database) as connection:
        return connection.execute(STORED).fetchall()


def whole(site: Site) -> None:
    """Wait until every server does its work again."""
    until(
        "every server to be ready", lambda: all(one.ready() == (200, []) for one in site.servers), seconds=START_SECONDS
    )
