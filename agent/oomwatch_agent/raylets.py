"""Where Ray keeps its sessions on this machine."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

USUAL_PLACE = Path("/tmp/ray")  # noqa: S108 - where Ray puts its sessions


def raylet_sessions() -> Iterator[Path]:
    """Session folders of the raylets that run on this machine, as far as their command lines may be read."""
    for process in psutil.process_iter(["name", "cmdline"]):
        if process.info["name"] == "raylet":
            yield from (
                Path(part.partition("=")[2])
                for part in process.info["cmdline"] or ()
                if part.startswith("--session_dir=")
            )


def usual_places(environ: Mapping[str, str] = os.environ, usual_place: Path = USUAL_PLACE) -> Iterator[Path]:
    """The folders in which Ray makes its sessions where nobody tells it another, the likeliest first."""
    given = environ.get("RAY_TMPDIR")
    if given:
        yield Path(given) / "ray"
    yield usual_place
