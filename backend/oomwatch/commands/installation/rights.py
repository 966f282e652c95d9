"""What this user may see of the machine: an agent sees no more. Run it as the agent's user."""

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch_agent.settings import AgentSettings

FAMILY = Family("rights")
DEVICES = ("nvidiactl", "nvidia[0-9]*", "kfd", "davinci[0-9]*")  # of /dev
OF_AMD = "dri/renderD*"  # beside kfd. Other makers' cards have such files too, which nobody needs to read a card


def checks(settings: AgentSettings, root: Path = Path("/")) -> Iterator[Finding]:
    """/proc, the cards' device files, the logs that are to be followed."""
    yield _others_processes(root / "proc")
    yield from _devices(root)
    for path in settings.log:
        yield from _log(path)


def _others_processes(proc: Path) -> Finding:
    """Whether the processes of other users can be seen (hidepid=), and what they were started with."""
    what, uid = "/proc", os.geteuid()
    others = [folder for folder in proc.iterdir() if folder.name.isdigit() and _owner(folder) not in (uid, None)]
    if not others and uid != 0:
        said = "processes of other users are hidden"
        remedy = (
            "run the agent as root or as the trainings' user; in a container with the host's processes (--pid=host)"
        )
        return FAMILY.warning(what, said, f"{remedy}; or mount /proc without hidepid")
    hidden = [folder for folder in others if not _readable(folder / "environ")]
    if hidden:
        said = f"what {len(hidden)} of {len(others)} processes of other users were started with cannot be read"
        remedy = (
            "their runs and ranks stay unknown: run the agent as root or with CAP_SYS_PTRACE (docs/howto/systemd.md)"
        )
        return FAMILY.warning(what, said, remedy)
    return FAMILY.ok(what, "processes of all users can be read")


def _owner(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except OSError:  # gone
        return None


def _readable(path: Path) -> bool:
    try:
        with path.open("rb") as opened:
            opened.read(1)
    except PermissionError:
        return False
    except OSError:  # gone, or of the kernel's own
        return True
    return True


def _devices(root: Path) -> Iterator[Finding]:
    dev = root / "dev"
    for pattern in (*DEVICES, OF_AMD) if (dev / "kfd").exists() else DEVICES:
        for path in sorted(dev.glob(pattern)):
            if not os.access(path, os.R_OK | os.W_OK):
                remedy = "add the agent's user to the file's group (video, render), or run it as root"
                yield FAMILY.wrong(str(path), "may not be opened", remedy)


def _log(path: str) -> Iterator[Finding]:
    if path == "-":
        return
    found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - the setting is a glob of the whole path
    if not found:
        yield FAMILY.warning(
            f"log {path}", "no such file yet", "it is followed as soon as it is there; is the path right?"
        )
    for name in found:
        if os.access(name, os.R_OK):
            yield FAMILY.ok(f"log {name}", f"{Path(name).stat().st_size:,} bytes")
        else:
            yield FAMILY.wrong(f"log {name}", "may not be read", "run the agent as its owner, or as root; or chmod o+r")
