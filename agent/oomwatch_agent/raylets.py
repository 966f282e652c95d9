"""Where Ray keeps its sessions on this machine."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from oomwatch_agent.kernel_files import read_bytes
from oomwatch_agent.who.short_names import ShortNames

_PROC = Path("/proc")
USUAL_PLACE = Path("/tmp/ray")  # noqa: S108 - where Ray puts its sessions


class RayletSessions:
    """Session folders of the raylets that run on this machine, as far as their command lines may be read."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._raylets = ShortNames(b"raylet".__eq__, proc)

    def __call__(self) -> Iterator[Path]:
        for pid in self._raylets.pids():
            yield from _sessions_in(read_bytes(f"{self._proc}/{pid}/cmdline"))


def raylet_sessions(proc: Path = _PROC) -> Iterator[Path]:
    """The same, for who asks once or seldom: nothing is remembered, and every process is read."""
    return RayletSessions(proc)()


def _sessions_in(command_line: bytes) -> Iterator[Path]:
    for part in command_line.decode("utf-8", "replace").split("\0"):
        if part.startswith("--session_dir="):
            yield Path(part.partition("=")[2])


def usual_places(environ: Mapping[str, str] = os.environ, usual_place: Path = USUAL_PLACE) -> Iterator[Path]:
    """The folders in which Ray makes its sessions where nobody tells it another, the likeliest first."""
    given = environ.get("RAY_TMPDIR")
    if given:
        yield Path(given) / "ray"
    yield usual_place
