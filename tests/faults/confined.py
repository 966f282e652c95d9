"""`oomwatch serve` as a process that may do less than this one: on a small disk, or without root's rights."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import httpx
from tests.missing import do_without
from tests.ports import free_port
from tests.server.running_server import DEADLINE_SECONDS, ENVIRON, RULES, RunningServer, until

Self = TypeVar("Self", bound="ConfinedServer")

# A user's own name spaces: what is mounted there, nobody else sees, and it goes with the last process within.
_APART = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
_WITH_SMALL_DISK = 'mount -t tmpfs -o "size=$0" tmpfs "$1" && shift && exec "$@"'


def without_root_rights() -> list[str]:
    """To be put before a command: for it, files that may not be written may not be written, even by root."""
    if os.geteuid() != 0:
        return []
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}", "--"]


class ConfinedServer(RunningServer):
    """Its database alone lies on a disk of so many KiB. As a context manager it is ready within, and killed after."""

    def __init__(self, folder: Path, disk_kib: int) -> None:
        self._folder, self._mounted = folder, folder / "disk"
        self._mounted.mkdir()
        (folder / "alerts.yaml").write_text(RULES, encoding="utf-8")
        self._disk = [*_APART, _WITH_SMALL_DISK, f"{disk_kib}k", str(self._mounted)]
        self.url = f"http://127.0.0.1:{free_port()}"
        if subprocess.run([*self._disk, "true"], check=False, capture_output=True).returncode != 0:
            do_without(
                "a disk of our own", "run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1)"
            )

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing.Self is younger than Python 3.10
        command = [sys.executable, "-m", "oomwatch", "serve", "--listen", self.url.removeprefix("http://")]
        command += ["--db", str(self._mounted / "oomwatch.db"), "--rules", str(self._folder / "alerts.yaml")]
        command += ["--flush-interval", "0.1", "--incidents", str(self._folder / "incidents")]
        with (self._folder / "server.log").open("wb") as log:
            self._process = subprocess.Popen([*self._disk, *command], stdout=log, stderr=log, env=ENVIRON)
        until("the server to be ready", self._is_ready)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def disk(self) -> Path:
        """The way to it from here."""
        return Path(f"/proc/{self._process.pid}/root{self._mounted}")

    def log(self) -> str:
        return (self._folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def stopped(self) -> Path:
        """End it by SIGTERM; gives a copy of its database."""
        disk = os.open(self.disk, os.O_DIRECTORY)  # it goes with the last who uses it
        self._process.terminate()
        assert self._process.wait(DEADLINE_SECONDS) == 0, self.log()
        copy = self._folder / "copy.db"
        with open(os.open("oomwatch.db", os.O_RDONLY, dir_fd=disk), "rb") as file:  # noqa: PTH123 - no path leads there
            copy.write_bytes(file.read())
        os.close(disk)
        return copy

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self.log()
        with contextlib.suppress(httpx.HTTPError):
            return self.get("/readyz").status_code == 200
        return False
