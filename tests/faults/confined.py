"""`oomwatch serve` as a process that may do less than this one: on a small disk, or without root's rights."""

import os
import subprocess
from pathlib import Path
from typing import TypeVar

from tests.acceptance.programs import ServerProgram
from tests.missing import do_without
from tests.server.running_server import DEADLINE_SECONDS, RULES, RunningServer

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


def with_small_disk(mounted: Path, kib: int) -> list[str]:
    """To be put before a command, for which a disk of so many KiB is where this folder is, which is made.

    Skips the test where that cannot be done.
    """
    mounted.mkdir()
    disk = [*_APART, _WITH_SMALL_DISK, f"{kib}k", str(mounted)]
    if subprocess.run([*disk, "true"], check=False, capture_output=True).returncode != 0:
        do_without("a disk of our own", "run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1)")
    return disk


class ConfinedServer(RunningServer):
    """Its database alone lies on a disk of so many KiB. As a context manager it is ready within, and killed after."""

    def __init__(self, folder: Path, disk_kib: int) -> None:
        self._folder, self._mounted = folder, folder / "disk"
        disk = with_small_disk(self._mounted, disk_kib)
        rules = folder / "alerts.yaml"
        rules.write_text(RULES, encoding="utf-8")
        more = ("--db", str(self._mounted / "oomwatch.db"), "--flush-interval", "0.1")
        self._server = ServerProgram(folder, rules, *more, "--incidents", str(folder / "incidents"), before=disk)
        self.url = self._server.url

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self._server.start()
        self._server.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.end()

    @property
    def disk(self) -> Path:
        """The way to it from here."""
        return Path(f"/proc/{self._server.program.pid}/root{self._mounted}")

    def log(self) -> str:
        return self._server.program.output

    def stopped(self) -> Path:
        """End it by SIGTERM; gives a copy of its database."""
        disk = os.open(self.disk, os.O_DIRECTORY)  # it goes with the last who uses it
        assert self._server.program.stop(seconds=DEADLINE_SECONDS) == 0, self.log()
        copy = self._folder / "copy.db"
        with open(os.open("oomwatch.db", os.O_RDONLY, dir_fd=disk), "rb") as file:  # noqa: PTH123 - no path leads there
            copy.write_bytes(file.read())
        os.close(disk)
        return copy
