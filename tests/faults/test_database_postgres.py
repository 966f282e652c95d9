"""PostgreSQL that hangs, that has no driver, and that takes less than SQLite does."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from psycopg import sql
from tests.postgres.server import PostgresServer
from tests.server.house import hello, sample
from tests.server.running_server import ENVIRON, AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.access.audit import deed
from oomwatch.access.token import Token
from oomwatch.letters import Standing
from oomwatch.store.address import parsed
from oomwatch.store.database import Database
from oomwatch.store.errors import StoreError
from oomwatch.store.postgres import READING, USUAL, WRITING, postgres_engine
from oomwatch.store.store import Batch, Entry, Store

PATIENCE_SECONDS = 2.0
_WITHOUT_DRIVER = "import sys; sys.modules['psycopg'] = None; from oomwatch.__main__ import main; sys.exit(main())"
_STARTS_ONE = """
import os
from tests.postgres.server import PostgresServer
from oomwatch.store.store import Store
server = PostgresServer()
server.start()
Store.open(server.create("one")).close()
server.remove()
print(os.geteuid())
"""


def impatient(url: str) -> Store:
    """One that waits for as long as a test has time."""
    Store.open(url).close()
    engine, patience = postgres_engine(parsed(url), USUAL._replace(patience=PATIENCE_SECONDS))
    return Store(Database(engine, "there", reading=READING, writing=WRITING, patience=patience))


def firing(alert_id: str, labels: Mapping[str, str] = {"node": "n"}) -> wire.Transition:
    return wire.Transition(
        id=alert_id, alert="full", severity="info", state="firing", at=1.0, started_at=1.0, labels=dict(labels)
    )


def test_one_that_hangs_is_waited_for_so_long_and_what_failed_may_be_asked_again(own_server: PostgresServer) -> None:
    store = impatient(own_server.url)
    store.append([firing("before")])
    own_server.pause()
    for ask in (lambda: store.append([firing("meanwhile")]), store.open_alerts):
        began = time.monotonic()
        with pytest.raises(StoreError, match=r"there: .*it is tried again|there: .*timeout"):
            ask()
        assert time.monotonic() - began < 60  # 2 to 8 on a machine with nothing else to do
    own_server.go_on()
    until("it to answer", lambda: _appended(store, "meanwhile"))
    assert [one.id for one in store.open_alerts()] == ["before", "meanwhile"]
    store.close()


def _appended(store: Store, alert_id: str) -> bool:
    try:
        store.append([firing(alert_id)])
    except StoreError:
        return False
    return True


def test_a_server_whose_postgresql_hangs_says_so_tells_people_and_loses_nothing(
    own_server: PostgresServer, tmp_path: Path
) -> None:
    start = time.time() - 2
    with serving(settings_in(tmp_path, db=own_server.url)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 10, start))
        agent.hear_ack_of(1)
        own_server.pause()
        agent.say(sample(2, 79, start + 1))
        until("it to be said", lambda: server.get("/readyz").status_code == 503)
        problems = server.get("/readyz").json()["problems"]
        assert any("does its disk or its server hang?" in one or "it is tried again" in one for one in problems)
        assert server.get("/healthz").status_code == 200
        own_server.go_on()
        agent.hear_ack_of(2)
        until("it to be well", lambda: server.get("/readyz").status_code == 200)
        alerts = until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        assert [one["alert"] for one in alerts] == ["full"]
        told = [one.at for _, one in server.parts.store.recent_samples(0.0)]
        assert told == pytest.approx([start, start + 1], abs=0.01)


def test_where_its_driver_is_missing_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    arguments = ["serve", "--listen", "127.0.0.1:0", "--db", "postgresql://oomwatch:hunter2@127.0.0.1:1/oomwatch"]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DRIVER, *arguments], env=ENVIRON, cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "PostgreSQL's driver is missing" in done.stderr
    assert "pip install 'oomwatch[postgres]'" in done.stderr
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_keeps_text_in_another_encoding_is_named_with_the_remedy(
    encoding: str, postgres_server: PostgresServer
) -> None:
    name = f"in_{encoding.lower()}"
    postgres_server.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C' ENCODING {}").format(
            sql.Identifier(name), sql.Literal(encoding)
        )
    )
    try:
        with pytest.raises(StoreError, match=f'"{name}" keeps text in {encoding}; make one in UTF8: createdb'):
            Store.open(postgres_server.url_of(name))
    finally:
        postgres_server.drop(name)


def test_names_with_nul_in_them_come_back_as_they_were(database_url: str) -> None:
    """JSON may hold one, SQLite keeps it, and PostgreSQL's text does not."""
    node, gpu, run, session = "n\0 1", "0\0", "\0run", "s\0"
    store = Store.open(database_url)
    facts = wire.NodeFacts(gpus=(wire.GpuFacts(gpu=gpu, uuid="u\0", name="H\0", total_bytes=2**30),))
    greeting = wire.Hello(
        protocol=1, agent_version="0", node=node, session=session, sent_at=1.0, interval_seconds=1.0, facts=facts,
        run=run,
    )  # fmt: skip
    reading = wire.Sample(seq=1, at=1.0, gpus=(wire.GpuSample(gpu=gpu, used_bytes=7),))
    step = wire.Event(seq=2, at=1.0, run=run, body=wire.Step(step=3))
    said: list[wire.AgentMessage] = [greeting, reading, step]
    store.record(
        Batch(entries=tuple(Entry(node=node, session=session, received_at=1.0, message=message) for message in said))
    )
    store.append([firing("a\0", {"node": node, "run": run})])
    assert [one.hello for one in store.nodes()] == [greeting]
    assert [(one.run, one.nodes) for one in store.runs()] == [(run, (node,))]
    assert store.gpus(run=run) == [(node, gpu)]
    assert store.progress(node, session) == 2
    assert store.series("gpu_used_bytes", {"node": node, "gpu": gpu}, 0.0, 2.0, 1.0).max == (7.0,)
    assert [one.step.step for one in store.steps(run, 10)] == [3]
    assert [one.id for one in store.alerts(node=node, run=run)] == ["a\0"]
    assert [told for told, _ in store.recent_samples(0.0)] == [node]
    store.keep_letters([], [Standing("c\0", 1.0)])
    assert store.account("c\0", [], 2.0).standing.known_since == 1.0
    store.keep_token(Token(id="t\0", name="name\0", role="agent", digest="d" * 64, nodes=(node,)))
    assert [(one.id, one.name, one.nodes) for one in store.tokens()] == [("t\0", "name\0", (node,))]
    store.note_deeds([deed(1.0, "who\0", "operator", "a\0", ("GET\0", "/\0"), 200)])
    assert [(one.who, one.method, one.path) for one in store.deeds(0.0, 10)] == [("who\0", "GET\0", "/\0")]
    store.retire_node(node, 2.0)
    assert store.retired_nodes() == [node]
    store.close()


def test_a_deed_of_any_length_is_kept(database_url: str) -> None:
    """SQLite keeps what a column is not wide enough for, and PostgreSQL refuses all that is written with it."""
    store = Store.open(database_url)
    long = "x" * 100_000
    who = "w" * wire.NAME_CHARS_MAX
    store.note_deeds([deed(1.0, who, "operator", long, (long, long), 200)])
    (kept,) = store.deeds(0.0, 10)
    assert (kept.who, kept.role, kept.status) == (who, "operator", 200)
    assert long.startswith(kept.path)
    assert len(kept.path) >= 2000
    store.close()


def test_the_tests_own_postgresql_runs_for_a_user_who_is_not_root(tmp_path: Path) -> None:
    rights = "+dac_read_search"  # to read what root alone may, as the interpreter may lie there
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={rights}"]
    other = [*other, f"--ambient-caps={rights}"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*other, sys.executable, "-B", "-c", _STARTS_ONE], env=ENVIRON, cwd=tmp_path.parents[1], capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) != 0
