"""The server's files and disk: too few descriptors, a disk that is full, an address that is taken."""

import contextlib
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faults.programs import Program
from tests.server.house import hello, sample
from tests.server.running_server import DEADLINE_SECONDS, AgentClient, serving, settings_in, until
from websockets.sync.client import connect

from oomwatch import wire
from oomwatch.listener import bind
from oomwatch.settings import Address


@pytest.mark.parametrize(("files", "crowd"), [(300, 700), (64, 200)], ids=["few", "not enough"])
def test_a_server_with_few_files_turns_the_crowd_away_says_so_and_goes_on_storing(
    tmp_path: Path, files: int, crowd: int
) -> None:
    """With very few, more is accepted than there is room for, before that is known: then it waits a second."""
    with Program(tmp_path, files=files) as server, connect(server.agents, compression=None, proxy=None) as agent:
        agent.send(wire.encode(hello(sent_at=time.time())).decode())
        agent.recv(timeout=DEADLINE_SECONDS)
        with contextlib.ExitStack() as stack:
            for _ in range(crowd):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            until("it to be said", lambda: f"{files // 2} connections are open" in server.log())
            agent.send(wire.encode(sample(1, 79, time.time())).decode())
            acknowledged = 0
            while acknowledged < 1:
                said = wire.decode_server(agent.recv(timeout=DEADLINE_SECONDS))
                acknowledged = said.seq if isinstance(said, wire.Ack) else 0
        alerts = until("the alert", lambda: _firing(server))
        assert [one["alert"] for one in alerts] == ["full"]
        assert files < 100 or "Traceback" not in server.log()


def _firing(server: Program) -> list[dict[str, Any]]:
    """None while the crowd is still being sent away."""
    answer = server.get("/api/v1/alerts?state=firing")
    return list(answer.json()) if answer.status_code == 200 else []


def test_a_recording_whose_disk_is_full_ends_and_nothing_else_does(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, record=Path("/dev/full"))
    with serving(settings) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        agent.hear_ack_of(1)
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        assert server.get("/readyz").status_code == 200
        assert server.parts.service.defects.total == 0


def test_a_folder_of_reports_that_cannot_be_written_costs_the_reports_alone(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("no folder", encoding="utf-8")
    with serving(settings_in(tmp_path, incidents=tmp_path / "reports")) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        oom = wire.Event(seq=1, at=time.time(), body=wire.DeviceOom(error="OutOfMemoryError", gpu="0"), run="r")
        agent.say(oom, sample(2, 79, time.time()))
        agent.hear_ack_of(2)
        assert server.get("/api/v1/incidents").json() == []
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        assert server.get("/readyz").status_code == 200


def test_an_address_that_is_free_again_is_taken_at_once() -> None:
    with contextlib.closing(bind(Address("127.0.0.1", 0))) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            served, _ = _accepted(first)
            served.close()  # the server's end closes first, and so waits out its time
            assert client.recv(1) == b""
    bind(Address("127.0.0.1", port)).close()


def _accepted(listener: socket.socket) -> tuple[socket.socket, object]:
    listener.setblocking(True)
    return listener.accept()
