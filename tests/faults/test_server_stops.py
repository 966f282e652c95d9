"""SIGTERM in every state: it ends within its time, and whatever was acknowledged is there when it starts again."""

import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.faults.programs import RULES_TO, Program
from tests.faults.strangers import SMALL_BYTES, UPGRADE
from tests.server.house import hello, sample
from tests.server.receiver import Answer, receiving
from tests.server.running_server import DEADLINE_SECONDS, ENVIRON, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from oomwatch import wire
from oomwatch.store.store import Store
from oomwatch.web.program import LAST_SECONDS

pytestmark = pytest.mark.acceptance
STARTS = 4
SENT = 400
Self = TypeVar("Self", bound="Telling")


class Telling:
    """An agent that says one reading after the other for as long as it is listened to, and notes what is stored."""

    def __init__(self, server: Program, session: str = "s1") -> None:
        self.acknowledged = 0
        self._server = server
        self._session = session
        self._thread = threading.Thread(target=self._run)

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        with (
            contextlib.suppress(ConnectionClosed, OSError),
            connect(self._server.agents, compression=None, proxy=None) as agent,
        ):
            agent.send(wire.encode(hello(session=self._session, sent_at=time.time())).decode())
            agent.recv(timeout=DEADLINE_SECONDS)
            for seq in range(1, SENT + 1):
                agent.send(wire.encode(sample(seq, 79 if seq == 5 else 40, time.time())).decode())
                with contextlib.suppress(TimeoutError):
                    said = wire.decode_server(agent.recv(timeout=0.01))
                    self.acknowledged = said.seq if isinstance(said, wire.Ack) else self.acknowledged


def stored(server: Program, session: str = "s1") -> int:
    store = Store.open(f"sqlite:///{server.folder / 'oomwatch.db'}")
    try:
        return store.progress("gpu-07", session)
    finally:
        store.close()


@pytest.mark.parametrize("place", range(STARTS))
def test_while_it_starts_or_migrates(tmp_path: Path, place: int) -> None:
    """Killed at another moment of its start each time: the next start finds a database that it can use."""
    server = Program(tmp_path)
    server.start()
    begun = time.monotonic()
    until("a moment of the start", lambda: time.monotonic() - begun >= 0.8 * place)
    server.stop()
    with server:
        assert server.get("/api/v1/alerts").json() == []


def test_while_it_stores_delivers_and_is_watched_by_who_never_reads(tmp_path: Path) -> None:
    held = threading.Event()
    with receiving() as receiver, contextlib.ExitStack() as stack:
        stack.callback(held.set)
        receiver.always(Answer(hold=held))
        (tmp_path / "alerts.yaml").write_text(RULES_TO.format(url=receiver.url), encoding="utf-8")
        with Program(tmp_path) as server:
            for _ in range(5):
                stack.enter_context(_browser_that_never_reads(server.port))
            with Telling(server) as agent:
                receiver.wait_for(1)
                until("something to be acknowledged", lambda: agent.acknowledged)
                status, seconds = server.stop()
            assert (status, server.has_ended()) == (0, True)
            assert seconds < LAST_SECONDS
            assert stored(server) >= agent.acknowledged > 0
            held.set()
            receiver.always(Answer())
            server.start()
            server.wait_until_ready()
            ids = until("it to be delivered", lambda: {one.headers["webhook-id"] for one in receiver.received[1:]})
            assert receiver.received[0].headers["webhook-id"] in ids  # the same message, under the same id


@contextlib.contextmanager
def _browser_that_never_reads(port: int) -> Iterator[None]:
    with socket.socket() as browser:
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BYTES)
        browser.connect(("127.0.0.1", port))
        browser.sendall(UPGRADE.format(path="/ws/live").encode())
        yield


def test_while_the_database_is_locked(tmp_path: Path) -> None:
    with Program(tmp_path) as server:
        with Telling(server) as agent:
            until("something to be acknowledged", lambda: agent.acknowledged)
            with contextlib.closing(sqlite3.connect(tmp_path / "oomwatch.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                _, seconds = server.stop()
        assert seconds < LAST_SECONDS + 10
        assert stored(server) >= agent.acknowledged > 0


def test_twice_is_at_once(tmp_path: Path) -> None:
    with Program(tmp_path) as server, Telling(server) as agent:
        until("something to be acknowledged", lambda: agent.acknowledged)
        os.kill(server.pid, 15)
        server.stop()
        assert server.has_ended()
        assert stored(server) >= agent.acknowledged


def test_where_something_hangs_it_ends_all_the_same() -> None:
    """As where a write to a disk that is away never returns."""
    code = (
        "import logging, os; from oomwatch.web.program import end_at_last\n"
        "logging.basicConfig(); end_at_last(0.2); os.read(os.pipe()[0], 1)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRON, timeout=DEADLINE_SECONDS, check=False
    )
    assert ended.returncode == 1
    assert "something hung" in ended.stderr
