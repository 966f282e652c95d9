"""`oomwatch up`: server and agent as two processes with one fate."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from tests.server.running_server import ENVIRON, RULES, until

from oomwatch.settings import Address
from oomwatch_agent.cards.makers import any_is_here

pytestmark = pytest.mark.acceptance


class Up:
    """The command as a process, in a folder of its own."""

    def __init__(self, folder: Path, simulate: tuple[str, ...] = ("--simulate", "demo", "--node", "demo")) -> None:
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
            self.address = Address("127.0.0.1", taken.getsockname()[1])
        (folder / "alerts.yaml").write_text(RULES, encoding="utf-8")
        self._log = folder / "up.log"
        arguments = ["--listen", f"127.0.0.1:{self.address.port}", "--db", str(folder / "oomwatch.db")]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "oomwatch", "up", *arguments, *simulate],
                cwd=folder,
                env=ENVIRON,
                stdout=log,
                stderr=log,
            )

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def nodes(self) -> list[str]:
        assert self.process.poll() is None, self.output
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.get(f"{self.address.url}/api/v1/nodes", trust_env=False)
            return [node["node"] for node in answer.json()]
        return []

    def children(self) -> dict[str, psutil.Process]:
        """Server and agent, by the name of their module."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return {child.cmdline()[2]: child for child in found if child.cmdline()[1:2] == ["-m"]}


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    up = Up(tmp_path)
    yield up
    if up.process.poll() is None:
        up.process.terminate()
    up.process.wait(20)


def test_both_start_and_ctrl_c_stops_both_cleanly(up: Up) -> None:
    until("the agent to be seen", up.nodes)
    assert f"Dashboard: {up.address.url}" in up.output
    children = up.children()
    assert set(children) == {"oomwatch", "oomwatch_agent"}
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(20) == 0
    assert not any(child.is_running() for child in children.values())
    assert "Traceback" not in up.output


def test_the_end_of_the_agent_is_the_end_of_both(up: Up) -> None:
    until("the agent to be seen", up.nodes)
    children = up.children()
    children["oomwatch_agent"].kill()
    assert up.process.wait(20) != 0
    assert "The agent has ended" in up.output
    assert not children["oomwatch"].is_running()


def test_a_taken_port_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "oomwatch", "up", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"]
        ended = subprocess.run(
            [*command, "--db", str(tmp_path / "x.db")], capture_output=True, text=True, timeout=30, check=False
        )
    assert ended.returncode == 2
    assert "is taken by another program" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(any_is_here(), reason="this machine has accelerators")
def test_without_a_gpu_a_demo_is_shown_and_said_to_be_one(tmp_path: Path) -> None:
    up = Up(tmp_path, simulate=())
    try:
        until("the agent to be seen", up.nodes)
        assert up.nodes() == ["demo"]
        assert "No GPU was found here" in up.output
    finally:
        up.process.terminate()
        up.process.wait(20)


def test_what_the_page_may_change_is_handed_on_to_the_server(tmp_path: Path) -> None:
    up = Up(tmp_path, simulate=("--simulate", "demo", "--node", "demo", "--rules-editable"))
    try:
        until("the agent to be seen", up.nodes)
        assert httpx.get(f"{up.address.url}/api/v1/rules/file", trust_env=False).json()["editable"]
    finally:
        up.process.terminate()
        up.process.wait(20)
