"""What the system lets a program of ours have, and whether systemd runs one."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from oomwatch.commands.installation.asked import Role
from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.oserror import in_words
from oomwatch_agent.cgroup import find

FAMILY = Family("limits")
FILES_FOR_SERVER, FILES_FOR_AGENT = 4096, 256  # connections of agents and browsers; logs that are followed
ASK_SECONDS = 5.0
GIB = 2**30


def checks(roles: Sequence[Role], root: Path = Path("/")) -> Iterator[Finding]:
    """Open files, memory, and the units of deploy/systemd for these programs where systemd runs."""
    yield _files(FILES_FOR_SERVER if "server" in roles else FILES_FOR_AGENT)
    yield from _memory(root)
    if (root / "run/systemd/system").is_dir() and shutil.which("systemctl"):
        yield from (_unit(f"oomwatch-{role}") for role in roles)


def _files(needed: int) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        remedy = (
            f"ulimit -n {needed}"
            + ("" if hard >= needed else " (root has to allow it)")
            + ", or LimitNOFILE= of the unit"
        )
        return FAMILY.warning("open files", f"{soft} at most; with many nodes or logs {needed} are needed", remedy)
    return FAMILY.ok("open files", f"{soft:,} at most")


def _memory(root: Path) -> Iterator[Finding]:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = find(root, total)
    if group is not None:
        yield FAMILY.ok("memory", f"{group.limit_bytes / GIB:.1f} GiB, by {group.version} ({group.folder})")


def _unit(name: str) -> Finding:
    """As far as systemd tells. One that is not installed is no fault: another program may start us."""
    asked = ["systemctl", "show", "--property=LoadState,ActiveState,SubState,Result", name]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=ASK_SECONDS).stdout  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return FAMILY.warning(name, f"systemctl does not answer: {in_words(error)}", "is systemd well?")
    state = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    if state.get("LoadState") != "loaded":
        return FAMILY.ok(name, "no such unit here")
    said = f"{state.get('ActiveState')} ({state.get('SubState')}), last result {state.get('Result')}"
    if state.get("ActiveState") == "active":
        return FAMILY.ok(name, said)
    return FAMILY.wrong(name, said, f"journalctl -u {name} says why; systemctl enable --now {name}")
