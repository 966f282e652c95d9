"""Where Ray keeps its sessions on this machine."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from oomwatch_agent.cgroup import names_in, read_bytes, read_line

_PROC = Path("/proc")
USUAL_PLACE = Path("/tmp/ray")  # noqa: S108 - where Ray puts its sessions


def raylet_sessions(proc: Path = _PROC) -> Iterator[Path]:
    """Session folders of the raylets that run on this machine, as far as their command lines may be read.

    Short names are read first: of a thousand processes, theirs cost a tenth of what their command lines do.
    """
    for pid in sorted(filter(str.isdigit, names_in(str(proc))), key=int):
        if read_line(f"{proc}/{pid}/comm").strip() == b"raylet":
            yield from _sessions_in(read_bytes(f"{proc}/{pid}/cmdline"))


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
