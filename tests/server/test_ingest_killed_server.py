"""A server that is killed, and an agent that sends again what was not acknowledged: nothing lost, nothing doubled."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import websockets.sync.client
from tests.server.house import hello, sample
from tests.server.running_server import DEADLINE_SECONDS, ENVIRON, RULES, until

from oomwatch import wire
from oomwatch.store.store import Store

MESSAGES = 300
KILL_AT = (60, 140, 220)  # before these messages the server is killed


class Program:
    """`oomwatch serve` as a process, on one port and one database for all its lives."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        arguments = ["--listen", f"127.0.0.1:{self.port}", "--db", str(self._folder / "oomwatch.db")]
        arguments += ["--rules", str(self._folder / "alerts.yaml"), "--flush-interval", "0.2"]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "oomwatch", "serve", *arguments], stdout=log, stderr=log, env=ENVIRON
            )

    def listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class ResendingAgent:
    """Keeps every message until it is acknowledged, and goes on where the server says."""

    def __init__(self, port: int, messages: list[wire.Sample]) -> None:
        self._address = f"ws://127.0.0.1:{port}/ws/agent"
        self._messages = messages
        self.acknowledged = 0

    def converse(self, up_to: int) -> None:
        """Send up to a message; after the last one of all, wait until they are acknowledged."""
        with websockets.sync.client.connect(self._address, compression=None, proxy=None) as connection:
            # A reading counts for three intervals: long enough for a slow machine to start a server anew.
            greeting = msgspec.structs.replace(hello(sent_at=time.time()), interval_seconds=20.0)
            connection.send(wire.encode(greeting).decode())
            welcome = wire.decode_server(connection.recv(timeout=DEADLINE_SECONDS))
            assert isinstance(welcome, wire.Welcome)
            self.acknowledged = max(self.acknowledged, welcome.resume_after_seq)
            for message in self._messages[welcome.resume_after_seq : up_to]:
                connection.send(wire.encode(message).decode())
            while up_to == len(self._messages) and self.acknowledged < up_to:
                answer = wire.decode_server(connection.recv(timeout=DEADLINE_SECONDS))
                assert isinstance(answer, wire.Ack)
                self.acknowledged = answer.seq


@pytest.fixture
def program(tmp_path: Path, unused_port: int) -> Iterator[Program]:
    (tmp_path / "alerts.yaml").write_text(RULES.replace("1s", "1h"), encoding="utf-8")
    program = Program(tmp_path, unused_port)
    try:
        yield program
    finally:
        program.kill()


@pytest.fixture
def unused_port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.acceptance
def test_kill_minus_nine_loses_nothing_and_doubles_nothing(program: Program, tmp_path: Path) -> None:
    program.start()
    until("the server to listen", program.listens)
    start = time.time() - MESSAGES / 100 - 1  # a message from the future would count as of its arrival
    messages = [sample(seq, 79, start + seq / 100) for seq in range(1, MESSAGES + 1)]
    agent = ResendingAgent(program.port, messages)
    for up_to in KILL_AT:
        agent.converse(up_to)
        program.kill()
        program.start()
        until("the server to listen", program.listens)
    agent.converse(MESSAGES)
    program.kill()
    assert agent.acknowledged == MESSAGES

    store = Store.open(f"sqlite:///{tmp_path / 'oomwatch.db'}")
    try:
        stored = [round((one.at - start) * 100) for _, one in store.recent_samples(start - 10)]
        assert stored == list(range(1, MESSAGES + 1))
        assert store.progress("gpu-07", "s1") == MESSAGES
        (alert,) = store.alerts()
        assert [transition.state for transition in store.transitions_of(alert.id)] == ["firing"]
    finally:
        store.close()
