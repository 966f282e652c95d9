"""Which schedulers there are here: Ray and Slurm. None is needed."""

import importlib.metadata
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch_agent.raylets import raylet_sessions, usual_places

FAMILY = Family("schedulers")


def checks(environ: Mapping[str, str], proc: Path = Path("/proc")) -> Iterator[Finding]:
    """Ray's sessions on this machine, whose logs an agent follows, and the job of Slurm that this is run in."""
    yield from _ray(environ, proc)
    yield from _slurm(environ)


def _ray(environ: Mapping[str, str], proc: Path) -> Iterator[Finding]:
    try:
        version = f"Ray {importlib.metadata.version('ray')}"
    except importlib.metadata.PackageNotFoundError:
        version = "Ray is not in this Python"
    sessions = list(dict.fromkeys(raylet_sessions(proc)))
    for session in sessions:
        logs = session / "logs"
        if os.access(logs, os.R_OK | os.X_OK):
            yield FAMILY.ok("Ray", f"{version}; a raylet runs here, with its logs in {logs}")
        else:
            remedy = "run the agent as Ray's user or as root; in a container mount Ray's temporary folder"
            yield FAMILY.wrong("Ray", f"the logs of a raylet that runs here, {logs}, cannot be read", remedy)
    if not sessions:
        old = [str(place) for place in usual_places(environ) if (place / "session_latest").exists()]
        yield FAMILY.ok("Ray", f"{version}; no raylet runs here" + (f", an old session is in {old[0]}" if old else ""))


def _slurm(environ: Mapping[str, str]) -> Iterator[Finding]:
    if job := environ.get("SLURM_JOB_ID"):
        yield FAMILY.ok("Slurm", f"this is run in job {job}")
    elif shutil.which("sinfo") or shutil.which("slurmd"):
        yield FAMILY.ok("Slurm", "it is installed here (docs/howto/slurm.md)")
