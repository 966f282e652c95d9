"""`Residents`: which processes of this machine have the most memory, cheaply.

Those that are small, most of thousands, are read in turns, and kernel threads once: unless so much more was taken
since all were read than those took that were read that one of them may have become one of the largest.
"""

import heapq
import resource
from collections.abc import Iterable
from pathlib import Path

from oomwatch_agent.kernel_files import names_in, read_line

_PAGE_BYTES = resource.getpagesize()
_SMALL_RATIO = 2  # a process is small that has less than half of what the last one has that is told
_TURNS = 6  # in so many calls each small one is read once


class Residents:
    """What is known of the processes in `proc`."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._pages_of: dict[str, int] = {}  # resident
        self._kernel_threads: set[str] = set()
        self._turn = 0
        self._floor_pages = 0  # who has fewer is small
        self._available_bytes = 0  # at the last call
        self._unexplained_bytes = 0  # taken since all were read, and by none of those that were read since

    def largest(self, count: int, available_bytes: int) -> dict[int, int]:
        """Process id -> bytes, largest first. Memory that processes share counts in each of them.

        `available_bytes`: what this machine has left.
        """
        pids = {name for name in names_in(str(self._proc)) if name.isdigit()}
        self._kernel_threads &= pids
        pids -= self._kernel_threads
        pages_before = sum(self._pages_of.values())
        self._pages_of = {pid: pages for pid, pages in self._pages_of.items() if pid in pids}
        due = self._due(pids)
        self._read(due)
        if self._may_hide_one(sum(self._pages_of.values()) - pages_before, available_bytes):
            self._read(pids.difference(due))
        top = heapq.nsmallest(count, self._pages_of.items(), key=lambda item: (-item[1], int(item[0])))
        self._floor_pages = top[-1][1] // _SMALL_RATIO if len(top) == count else 0
        return {int(pid): resident * _PAGE_BYTES for pid, resident in top if resident}

    def _due(self, pids: set[str]) -> list[str]:
        """Those that are not small, or not known, and of the small ones those whose turn it is."""
        self._turn = (self._turn + 1) % _TURNS
        known, floor = self._pages_of, self._floor_pages
        return [pid for pid in pids if known.get(pid, floor) >= floor or int(pid) % _TURNS == self._turn]

    def _may_hide_one(self, grown_pages: int, available_bytes: int) -> bool:
        """Whether one that was not read may be large by now; `grown_pages` is by how much those grew that were."""
        taken_bytes, self._available_bytes = self._available_bytes - available_bytes, available_bytes
        # Memory that processes share grows in each of them: that much more than was taken hides nobody.
        self._unexplained_bytes = max(0, self._unexplained_bytes + taken_bytes - grown_pages * _PAGE_BYTES)
        if self._unexplained_bytes < self._floor_pages * _PAGE_BYTES:
            return False
        self._unexplained_bytes = 0
        return True

    def _read(self, pids: Iterable[str]) -> None:
        for pid in pids:
            size, self._pages_of[pid] = self._pages(pid)
            if size == 0:
                self._kernel_threads.add(pid)
                del self._pages_of[pid]

    def _pages(self, pid: str) -> tuple[int | None, int]:
        """Virtual size (0 is a kernel thread; None: gone) and resident size, in pages."""
        try:
            size, resident, *_ = read_line(f"{self._proc}/{pid}/statm").split()
        except ValueError:  # it is gone
            return None, 0
        return int(size), int(resident)
