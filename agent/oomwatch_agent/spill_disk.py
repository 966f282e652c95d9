"""How full the file system is that Ray spills its objects to: the one with its session folder."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.raylets import raylet_sessions, usual_places

_LIMIT_SECONDS = 1.0  # a network's file system may hang for ever
_FIND_SECONDS = 300.0  # to ask for running raylets walks over all processes


class DiskUse(msgspec.Struct, frozen=True):
    path: str  # the folder with Ray's sessions
    total_bytes: int
    used_bytes: int  # all that Ray cannot have, as Ray itself counts it: what only root may fill is in it


class SpillDisk:
    """The disk below Ray's folder; none where Ray has never run. Looked at from one thread, in another one."""

    def __init__(
        self,
        *,
        sessions: Callable[[], Iterable[Path]] = raylet_sessions,
        places: Callable[[], Iterable[Path]] = usual_places,
        usage: Callable[[Path], os.statvfs_result] = os.statvfs,
        clock: Callable[[], float] = time.monotonic,
        limit_seconds: float = _LIMIT_SECONDS,
    ) -> None:
        self._sessions = sessions
        self._places = places
        self._usage = usage
        self._clock = clock
        self._guard: HangGuard[str, DiskUse | None] = HangGuard(limit_seconds)
        self._of_raylets: list[Path] = []
        self._found_at = float("-inf")

    def look(self) -> DiskUse | None:
        """What is used now; None where there is no folder of Ray, or its file system does not answer."""
        return self._guard.ask(["disk"], lambda _: self._look()).get("disk")

    def _look(self) -> DiskUse | None:
        return next(self._uses(), None)

    def _uses(self) -> Iterator[DiskUse]:
        for folder in self._folders():
            try:
                use = self._usage(folder)
            except OSError:  # it is not there, or may not be looked at
                continue
            free_bytes, total_bytes = use.f_bavail * use.f_frsize, use.f_blocks * use.f_frsize
            if total_bytes > 0:
                yield DiskUse(str(folder), total_bytes, max(0, total_bytes - free_bytes))

    def _folders(self) -> Iterator[Path]:
        """That of a running raylet before the usual ones: it may have been given another."""
        now = self._clock()
        if now - self._found_at >= _FIND_SECONDS:
            self._found_at = now
            self._of_raylets = [session.parent for session in self._sessions()]
        yield from self._of_raylets
        yield from self._places()
