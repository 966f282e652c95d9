"""oomwatch-agent.pyz, made for this Python and machine, and who runs it."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from tests.missing import do_without
from tests.packaging.wheels import ROOT, Wheel

NOBODY = 65534
NAME = f"bin/python3.{sys.version_info.minor}"


def _anybody_may_start(program: Path) -> bool:
    above = program.resolve().parents
    return program.exists() and all(folder.stat().st_mode & 0o001 for folder in above)


# A Python that has none of what this environment has: the one that it was made from, or the system's of this version.
BARES = [Path(sys.base_prefix) / NAME, Path("/usr") / NAME]
BARE = next((one for one in BARES if _anybody_may_start(one)), BARES[0])
SOMEBODY = NOBODY if os.geteuid() == 0 and _anybody_may_start(BARE) else None  # else the test's own user


def make(agent: Wheel, target: Path) -> None:
    """The file without what is for other Pythons and machines: that differs in what is downloaded, and in no more."""
    this = ["--python", f"3.{sys.version_info.minor}", "--machine", platform.machine()]
    program = [sys.executable, "scripts/make_zipapp.py", str(agent.path), str(target), *this]
    told = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode != 0 and "'pip', 'download'" in told.stderr:
        do_without("what the zipapp is made of", f"a network for pip, which says: {told.stderr[-500:]}")
    assert told.returncode == 0, told.stderr
