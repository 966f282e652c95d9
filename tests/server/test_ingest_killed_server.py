"""A server that is killed, and an agent that sends again what was not acknowledged: nothing lost, nothing doubled."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import websockets.sync.client
from tests.acceptance.programs import Server, ending
from tests.server.house import hello, sample
from tests.server.running_server import DEADLINE_SECONDS, RULES

from oomwatch import wire
from oomwatch.store.store import Store

MESSAGES = 300
KILL_AT = (60, 140, 220)  # before these messages the server is killed


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
def server(tmp_path: Path) -> Iterator[Server]:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(RULES.replace("1s", "1h"), encoding="utf-8")
    server = Server(tmp_path, rules, "--flush-interval", "0.2")
    with ending(server):
        yield server


@pytest.mark.acceptance
def test_kill_minus_nine_loses_nothing_and_doubles_nothing(server: Server, tmp_path: Path) -> None:
    start = time.time() - MESSAGES / 100 - 1  # a message from the future would count as of its arrival
    messages = [sample(seq, 79, start + seq / 100) for seq in range(1, MESSAGES + 1)]
    agent = ResendingAgent(server.port, messages)
    for up_to in KILL_AT:
        agent.converse(up_to)
        server.program.kill()
        server.start()
    agent.converse(MESSAGES)
    server.program.kill()
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
