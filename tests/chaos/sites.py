"""What is killed and cut: a server alone with SQLite, and three that share PostgreSQL and NATS."""

import contextlib
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import psycopg
from tests.acceptance.programs import Program, until
from tests.acceptance.several import ReplicaProgram, within
from tests.chaos.proxy import Way, way_to
from tests.nats.server import NatsServer
from tests.ports import free_port
from tests.postgres.server import PostgresServer

RULES = """
rules:
  - alert: full
    severity: critical
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    for: 1s
    keep_firing_for: 2s
    summary: "GPU {gpu} of {node} is {value} full"
notify:
  group_wait: 50ms
  group_interval: 0s
  repeat_interval: 1h
  channels:
    - {kind: webhook, name: ops, url: "RECEIVER"}
"""
STORED = (
    "SELECT node, id, state, count(*) FROM transitions WHERE change = 'state' GROUP BY node, id, state "
    "ORDER BY node, id, state"
)
Row = tuple[str, str, str, int]  # node, id of the alert, state, how often
START_SECONDS = 120.0


class Process(Protocol):
    """A server that may be killed, suspended and started again."""

    name: str
    program: Program

    def start(self) -> object: ...
    def ready(self) -> tuple[int, list[str]]: ...


class Blow(NamedTuple):
    """Something that is done to one place of the site, one at a time, and taken back after a while."""

    name: str
    place: str
    strike: Callable[[], object]
    mend: Callable[[], object]
    longest_seconds: float


class Site(NamedTuple):
    """`way` is how everybody comes to the servers; `rows` reads what is stored."""

    servers: Sequence[Process]
    way: Way
    blows: Sequence[Blow]
    rows: Callable[[], list[Row]]


class Alone:
    """`oomwatch serve` with a database of its own."""

    name = "server"

    def __init__(self, folder: Path, rules: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._arguments = [
            *("-m", "oomwatch", "serve", "--listen", f"127.0.0.1:{self.port}", "--rules", str(rules)),
            *("--db", f"sqlite:///{folder / 'oomwatch.db'}", "--flush-interval", "500ms"),
        ]
        self.program: Program

    def start(self) -> None:
        self.program = Program(self.name, self._arguments, self._folder)

    ready = ReplicaProgram.ready


def _server_blows(server: Process) -> Iterator[Blow]:
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


def _wait_until_ready(servers: Sequence[Process]) -> None:
    within(START_SECONDS, "the servers are ready", lambda: all(one.ready()[0] == 200 for one in servers))


@contextlib.contextmanager
def alone(folder: Path, receiver_url: str) -> Iterator[Site]:
    server = Alone(folder, _rules(folder, receiver_url))
    server.start()
    try:
        _wait_until_ready([server])
        with way_to([server.port]) as way:
            yield Site([server], way, [*_server_blows(server), *_way_blows(way)], lambda: _sqlite_rows(folder))
    finally:
        server.program.kill()


def _sqlite_rows(folder: Path) -> list[Row]:
    with contextlib.closing(sqlite3.connect(folder / "oomwatch.db", timeout=20)) as database:
        return list(database.execute(STORED))


@contextlib.contextmanager
def several(folder: Path, receiver_url: str) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        postgres, nats = PostgresServer(), NatsServer(folder)
        stack.callback(postgres.remove)
        postgres.start()
        stack.callback(nats.kill)
        nats.start()
        database = postgres.create("site")
        rules = _rules(folder, receiver_url)
        servers = [ReplicaProgram(name, folder, rules, database, nats.url) for name in "abc"]
        for server in servers:
            server.start()
            stack.callback(server.end)
        _wait_until_ready(servers)
        way = stack.enter_context(way_to([server.port for server in servers]))
        blows = [blow for server in servers for blow in _server_blows(server)]
        blows += [*_way_blows(way), *_shared_blows(postgres, nats)]
        yield Site(servers, way, blows, lambda: _postgres_rows(database))


def _shared_blows(postgres: PostgresServer, nats: NatsServer) -> Iterator[Blow]:
    yield Blow("stop PostgreSQL", "database", lambda: postgres.stop("immediate"), postgres.start, 4.0)
    yield Blow("suspend PostgreSQL", "database", postgres.pause, postgres.go_on, 6.0)
    yield Blow("kill NATS", "nats", nats.kill, nats.start, 4.0)


def _postgres_rows(database: str) -> list[Row]:
    with psycopg.connect(database) as connection:
        return connection.execute(STORED).fetchall()


def _rules(folder: Path, receiver_url: str) -> Path:
    path = folder / "alerts.yaml"
    path.write_text(RULES.replace("RECEIVER", receiver_url), encoding="utf-8")
    return path


def whole(site: Site) -> None:
    """Wait until every server does its work again."""
    until(
        "every server to be ready", lambda: all(one.ready() == (200, []) for one in site.servers), seconds=START_SECONDS
    )
