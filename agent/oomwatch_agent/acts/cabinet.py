"""Where the acts' files lie: a folder for each alert, of which the latest are kept.

FOLDER/20261130T095326Z-memory_forecast-9f3c0a1b2c3d4e5f/
    alert.json  stacks-4711.txt  hook.txt        written by the agent
    memory_snapshot-4711/memory.pickle           written by the process itself, into a folder of its user's
"""

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from oomwatch import wire

SETS_KEPT = 20
BYTES_KEPT = 4 * 2**30
FILE_BYTES_MAX = 256 * 2**20
FREE_RATIO = 0.25  # of the free space that one file may take: a full disk would end the training as surely
_MODE = 0o711  # other users' processes reach the folders that they are given, and see no others
_MAX_NAME = 60


class Cabinet:
    """Makes and clears folders. Every method may raise OSError."""

    def __init__(self, folder: Path, *, bytes_kept: int = BYTES_KEPT) -> None:
        self._folder = folder
        self._bytes_kept = bytes_kept

    def open_set(self, alert: wire.Alert) -> Path:
        """A new folder for an alert's files. What is older than the latest, or too much, goes."""
        self._folder.mkdir(_MODE, parents=True, exist_ok=True)
        found = self._folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(f"{self._folder} is no folder of user {os.geteuid()}; name another with --acts-dir")
        self._clear()
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        made = self._folder / f"{at}-{_plain(alert.alert)}-{_plain(alert.id)}"
        made.mkdir(_MODE)
        made.chmod(_MODE)  # whatever the umask is
        return made

    def bytes_for_a_file(self) -> int:
        """What a file may take of the disk."""
        return min(FILE_BYTES_MAX, int(shutil.disk_usage(self._folder).free * FREE_RATIO))

    def _clear(self) -> None:
        """Make room for one more."""
        left = self._bytes_kept
        for number, old in enumerate(sorted(self._sets(), reverse=True), start=2):
            left -= _size(old)
            if number > SETS_KEPT or left < 0:
                shutil.rmtree(old, ignore_errors=True)

    def _sets(self) -> Iterator[Path]:
        """Only what is named as we name them: a person may have chosen a folder with other things in it."""
        return (path for path in self._folder.iterdir() if _SET.fullmatch(path.name) and not path.is_symlink())


def folder_for_process(of_set: Path, act: str, pid: int) -> Path:
    """A folder that the process can write to, whoever it runs as. Raises OSError, also where it is gone."""
    owner = Path(f"/proc/{pid}").stat()
    made = of_set / f"{act}-{pid}"
    made.mkdir(0o700)
    if os.geteuid() == 0:
        os.chown(made, owner.st_uid, owner.st_gid)
    return made


_SET = re.compile(r"\d{8}T\d{6}Z-[\w.-]+")


def _plain(text: str) -> str:
    """A name from the server as a part of a path."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)[:_MAX_NAME]


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(Path(place) / name).st_size
    return total
