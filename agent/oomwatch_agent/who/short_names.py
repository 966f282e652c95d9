"""Processes by their short names, /proc/PID/comm: which needs no lock, unlike a command line, but an open file each.

A node has some thousand processes, most of them the kernel's own, and what is looked for is a handful. So a process
whose name is none of those is read at the first looks of its life, while it may still become another program (exec),
and after that only now and then.
"""

from collections.abc import Callable
from pathlib import Path

from oomwatch_agent.kernel_files import names_in, read_line

YOUNG_LOOKS = 3  # a shell becomes the program that it starts within moments
# In so many looks each is read once. Looks for engines and for Ray's sessions are up to half a minute apart, so that
# nothing stays unseen for longer than four minutes.
OLD_EVERY = 8


class ShortNames:
    """Of the processes in `proc`, those whose short name `matters`. Used by one thread at a time."""

    def __init__(self, matters: Callable[[bytes], bool], proc: Path = Path("/proc")) -> None:
        self._matters = matters
        self._proc = str(proc)
        self._looks: dict[str, int] = {}  # process -> how often its name was read and did not matter
        self._turn = 0

    def pids(self) -> list[int]:
        """Their process ids, lowest first."""
        before, self._looks, found = self._looks, {}, []
        self._turn = (self._turn + 1) % OLD_EVERY
        for pid in filter(str.isdigit, names_in(self._proc)):
            looks = before.get(pid, 0)
            if looks >= YOUNG_LOOKS and int(pid) % OLD_EVERY != self._turn:
                self._looks[pid] = looks
            elif self._matters(read_line(f"{self._proc}/{pid}/comm").strip()):
                found.append(int(pid))
            else:
                self._looks[pid] = looks + 1
        return sorted(found)
