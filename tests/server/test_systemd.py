"""What systemd hears of a server that it started."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running_server import DEADLINE_SECONDS, serving, settings_in, until

from oomwatch.web.systemd import tell, watchdog_seconds


class Systemd:
    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def hear(self) -> str:
        return self._line.recv(100).decode()

    def falls_silent(self, *, within_words: int) -> bool:
        """Whether nothing more is said for two of the limits, after what was said before."""
        self._line.settimeout(0.4)
        try:
            for _ in range(within_words):
                self.hear()
        except TimeoutError:
            return True
        finally:
            self._line.settimeout(DEADLINE_SECONDS)
        return False


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systemd]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "notify"))
        line.settimeout(DEADLINE_SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        yield Systemd(line)


def test_a_server_says_that_it_is_ready_works_and_goes_down(tmp_path: Path, systemd: Systemd) -> None:
    with serving(settings_in(tmp_path)) as server:
        assert {systemd.hear() for _ in range(3)} == {"READY=1", "WATCHDOG=1"}
        assert systemd.hear() == "WATCHDOG=1"
        server.stop()
        until("the goodbye", lambda: systemd.hear() == "STOPPING=1")


def test_a_server_whose_loop_has_ended_is_started_again(tmp_path: Path, systemd: Systemd) -> None:
    with serving(settings_in(tmp_path)) as server:
        assert systemd.hear()
        server.end_task("beat")
        until("the end to be noticed", lambda: server.parts.dead_tasks)
        assert systemd.falls_silent(within_words=20)


def test_an_abstract_address_is_reached() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(f"\0oomwatch-test-{os.getpid()}")
        tell("READY=1", {"NOTIFY_SOCKET": f"@oomwatch-test-{os.getpid()}"})
        assert line.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "/nowhere/at/all"])
def test_without_systemd_nothing_happens(address: str) -> None:
    tell("READY=1", {"NOTIFY_SOCKET": address})


def test_the_limit_is_that_of_this_very_process() -> None:
    assert watchdog_seconds({"WATCHDOG_USEC": "30000000"}) == 30.0
    assert watchdog_seconds({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}) == 30.0
    assert watchdog_seconds({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}) is None
    assert watchdog_seconds({"WATCHDOG_USEC": "0"}) is None
    assert watchdog_seconds({}) is None
