"""One of several servers that is started while PostgreSQL is down waits for it, and says so."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest
from tests.acceptance.programs import ServerProgram, ending, until
from tests.ports import free_port
from tests.postgres.server import PostgresServer
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

RULES = """
rules:
  - {alert: full, when: {kind: threshold, metric: gpu_used_ratio, above: 85%}, summary: "{gpu} is full"}
"""


@contextlib.contextmanager
def started(folder: Path, db: str) -> Iterator[ServerProgram]:
    """Nobody listens where its NATS should be, and it need not."""
    rules = folder / "alerts.yaml"
    rules.write_text(RULES, encoding="utf-8")
    replica = ServerProgram(folder, rules, "--db", db, "--cluster-nats", f"nats://127.0.0.1:{free_port()}")
    replica.start()
    with ending(replica):
        yield replica


def test_a_server_that_is_started_without_postgresql_is_alive_and_says_why_it_is_not_ready(
    own_server: PostgresServer, tmp_path: Path
) -> None:
    own_server.stop("immediate")
    with started(tmp_path, own_server.url) as replica:
        until("the server to be alive", lambda: replica.ask("/healthz")[0] == 200)
        status, said = replica.ask("/readyz")
        assert (status, msgspec.json.decode(said)["ready"]) == (503, False)
        assert b"PostgreSQL does not listen there" in said
        assert replica.ask("/api/v1/alerts")[0] == 503
        with pytest.raises(InvalidStatus) as refused, connect(f"ws://127.0.0.1:{replica.port}/ws/agent", proxy=None):
            pass
        assert refused.value.response.status_code == 503
        assert "this server waits for it" in replica.program.output
        own_server.start()
        until("the server to be ready", lambda: replica.ask("/readyz")[0] == 200)
        assert replica.ask("/api/v1/alerts") == (200, b"[]")
        assert replica.program.stop(seconds=60) == 0


def test_a_server_that_waits_ends_when_it_is_asked_to(own_server: PostgresServer, tmp_path: Path) -> None:
    own_server.stop("immediate")
    with started(tmp_path, own_server.url) as replica:
        until("the server to be alive", lambda: replica.ask("/healthz")[0] == 200)
        assert replica.program.stop(seconds=60) == 0


def test_a_server_that_has_the_wrong_password_does_not_wait(own_server: PostgresServer, tmp_path: Path) -> None:
    wrong = own_server.url.replace("://oomwatch:", "://oomwatch:x")
    with started(tmp_path, wrong) as replica:
        until("the server to end", lambda: not replica.program.running)
        assert "correct user and password in the URL" in replica.program.output


@pytest.mark.parametrize("table", ["alembic_version", "transitions"])
def test_a_server_whose_postgresql_goes_away_while_it_starts_starts_anew(
    own_server: PostgresServer, tmp_path: Path, table: str
) -> None:
    """The moment is held by a lock: the server waits for a table when PostgreSQL goes."""
    with started(tmp_path, own_server.url) as first:
        until("the tables to be made", lambda: first.ask("/readyz")[0] == 200)
    with contextlib.closing(psycopg.connect(own_server.url)) as holder:
        holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        with started(tmp_path, own_server.url) as replica:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            with contextlib.closing(psycopg.connect(own_server.url, autocommit=True)) as looker:
                until("the server to wait for it", lambda: (looker.execute(waits).fetchone() or [0])[0])
            own_server.stop("immediate")
            own_server.start()
            until("the server to be ready", lambda: replica.ask("/readyz")[0] == 200)
            assert "this server starts anew" in replica.program.output
