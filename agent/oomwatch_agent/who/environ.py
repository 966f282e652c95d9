"""What a process of this machine was started with: /proc/PID/environ."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from oomwatch_agent.hang_guard import HangGuard

_LIMIT_SECONDS = 0.2
_KEEP_SECONDS = 60.0  # a burst of lines of one process costs one look


class Environments:
    """Reads /proc/PID/environ, which blocks while the process is stuck in the kernel: so with a limit, and rarely."""

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        limit_seconds: float = _LIMIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = root / "proc"
        self._guard: HangGuard[int, dict[str, str] | None] = HangGuard(limit_seconds)
        self._clock = clock
        self._known: dict[int, tuple[float, dict[str, str] | None]] = {}

    def __call__(self, pid: int) -> Mapping[str, str] | None:
        """The environment a process was started with; None where it is hidden from us, stuck or gone."""
        now = self._clock()
        self._known = {key: known for key, known in self._known.items() if now - known[0] < _KEEP_SECONDS}
        if pid not in self._known:
            self._known[pid] = (now, self._guard.ask([pid], self._read).get(pid))
        return self._known[pid][1]

    def _read(self, pid: int) -> dict[str, str] | None:
        return environment_in(self._proc / str(pid))


def environment_in(process: Path) -> dict[str, str] | None:
    """What a process was started with, of its folder in /proc; None where that may not be read. It may block."""
    try:
        content = (process / "environ").read_bytes()
    except OSError:  # gone, or another user's
        return None
    # A browser's process writes thousands of zeros there.
    pairs = (entry.partition("=") for entry in content.decode(errors="replace").split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs if name}
