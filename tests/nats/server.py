"""A real NATS on loopback, which may be killed and started again on its port."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.missing import do_without
from tests.ports import free_port

START_SECONDS = 20.0


class NatsServer:
    """`nats-server` without an account: on 127.0.0.1 alone."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("nats-server", path="/usr/sbin:/usr/bin:/usr/local/bin")
        if program is None:
            do_without("nats-server", "scripts/system-packages, or apt-get install nats-server")
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._program = program
        self._log = folder / "nats.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._program, "-a", "127.0.0.1", "-p", str(self.port)], stdout=output, stderr=output
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, "NATS did not listen in time"
            time.sleep(0.02)  # between two looks, never instead of one

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def nats_running(folder: Path) -> Iterator[NatsServer]:
    server = NatsServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
