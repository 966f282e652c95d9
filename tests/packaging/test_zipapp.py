"""oomwatch-agent.pyz: one file, an empty folder, a Python that has nothing installed."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.programs import free_port, until
from tests.missing import do_without
from tests.packaging.running import running
from tests.packaging.wheels import ENVIRON, ROOT, Wheel

from oomwatch import __version__

NOBODY = 65534
NAME = f"bin/python3.{sys.version_info.minor}"


def _anybody_may_start(program: Path) -> bool:
    above = program.resolve().parents
    return program.exists() and all(folder.stat().st_mode & 0o001 for folder in above)


# A Python that has none of what this environment has: the one that it was made from, or the system's of this version.
BARES = [Path(sys.base_prefix) / NAME, Path("/usr") / NAME]
BARE = next((one for one in BARES if _anybody_may_start(one)), BARES[0])
SOMEBODY = NOBODY if os.geteuid() == 0 and _anybody_may_start(BARE) else None  # else the test's own user


@pytest.fixture(scope="session")
def ground() -> Iterator[Path]:
    """A folder that everybody may enter; those of pytest are of one user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def pyz(wheels: dict[str, Wheel], ground: Path) -> Path:
    """The file, for this Python and machine only: the others differ in what is downloaded."""
    target = ground / "oomwatch-agent.pyz"
    this = ["--python", f"3.{sys.version_info.minor}", "--machine", platform.machine()]
    program = [sys.executable, "scripts/make_zipapp.py", str(wheels["oomwatch-agent"].path), str(target), *this]
    told = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode != 0 and "pip" in told.stderr and "download" in told.stderr:
        do_without("what the zipapp is made of", f"a network for pip, which says: {told.stderr[-500:]}")
    assert told.returncode == 0, told.stderr
    return target


@pytest.fixture
def home(ground: Path) -> Iterator[Path]:
    """An empty one, of who runs the file."""
    with tempfile.TemporaryDirectory(dir=ground) as folder:
        if SOMEBODY is not None:
            os.chown(folder, SOMEBODY, SOMEBODY)
        yield Path(folder)


def _run(pyz: Path, *arguments: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [str(BARE), "-I", str(pyz), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120, user=SOMEBODY
    )


def test_it_runs_where_nothing_is_installed_and_home_is_empty(pyz: Path, home: Path) -> None:
    copied = Path(shutil.copy(pyz, home))
    told = _run(copied, "--version", folder=home, HOME=str(home))
    assert (told.stdout, told.stderr) == (f"oomwatch-agent {__version__}\n", "")
    assert [path.name for path in (home / ".cache/oomwatch-agent").iterdir()]


def test_what_a_cleaner_took_away_comes_again(pyz: Path, home: Path) -> None:
    _run(pyz, "--version", folder=home, HOME=str(home))
    lost = [*home.rglob("oomwatch_agent/settings.py"), *home.rglob("msgspec/*.so")]
    assert len(lost) == 2
    for path in lost:
        path.unlink()
    assert _run(pyz, "--version", folder=home, HOME=str(home)).returncode == 0


def test_it_unpacks_into_a_folder_of_its_own_where_there_is_no_home(pyz: Path, home: Path) -> None:
    told = _run(pyz, "--version", folder=home, HOME="/proc/none", TMPDIR=str(home))
    assert told.stdout == f"oomwatch-agent {__version__}\n", told.stderr
    (place,) = home.iterdir()
    assert place.stat().st_mode & 0o777 == 0o700
    assert place.name.startswith("oomwatch-agent-")


def test_it_trusts_no_folder_that_others_may_write_to(pyz: Path, home: Path) -> None:
    place = home / "shared"
    place.mkdir()
    place.chmod(0o777)
    told = _run(pyz, "--version", folder=home, OOMWATCH_UNPACKED=str(place))
    assert told.returncode == 1
    assert "others may write to it" in told.stderr
    assert "OOMWATCH_UNPACKED=FOLDER" in told.stderr


def test_a_python_that_it_does_not_serve_is_told_which_it_does(pyz: Path, home: Path, ground: Path) -> None:
    other = ground / "other.pyz"
    with zipfile.ZipFile(pyz) as whole, zipfile.ZipFile(other, "w") as part:
        for entry in whole.infolist():
            name = entry.filename.replace(f"cpython-3{sys.version_info.minor}", "cpython-399")
            part.writestr(name, whole.read(entry))
    other.chmod(0o644)
    told = _run(other, "--version", folder=home, HOME=str(home))
    assert told.returncode == 1
    assert told.stderr.startswith("oomwatch-agent: this file serves CPython 3.99 on Linux with glibc")
    assert "pip install oomwatch-agent" in told.stderr
    assert list(home.iterdir()) == []


def test_a_training_that_it_launches_has_the_probe_inside(pyz: Path, home: Path) -> None:
    look = "import json, sys; print(json.dumps('oomwatch_probe' in sys.modules))"
    told = _run(pyz, "run", "--", str(BARE), "-c", look, folder=home, HOME=str(home), PATH=os.defpath)
    assert json.loads(told.stdout) is True, told.stderr


def test_the_same_input_gives_the_same_bytes(pyz: Path, wheels: dict[str, Wheel], tmp_path: Path) -> None:
    this = ["--python", f"3.{sys.version_info.minor}", "--machine", platform.machine()]
    again = tmp_path / "again.pyz"
    program = [sys.executable, "scripts/make_zipapp.py", str(wheels["oomwatch-agent"].path), str(again), *this]
    subprocess.run(program, cwd=ROOT, capture_output=True, check=True)
    assert again.read_bytes() == pyz.read_bytes()


@pytest.mark.acceptance
def test_it_reports_to_a_server(pyz: Path, whole: Path, home: Path, tmp_path: Path) -> None:
    port = free_port()
    where = f"127.0.0.1:{port}"
    serve: list[str | Path] = [whole / "oomwatch", "serve", "--listen", where, "--db", str(tmp_path / "oomwatch.db")]
    report: list[str | Path] = [BARE, "-I", pyz, "--simulate", "demo", "--node", "zipped-node", "--server", where]
    with (
        running(*serve, folder=tmp_path),
        running(*report, folder=tmp_path, environ={**ENVIRON, "HOME": str(home)}, user=SOMEBODY),
    ):
        log = tmp_path / "oomwatch.log"
        until("the server to hear of the node", lambda: "zipped-node" in log.read_text(encoding="utf-8"))
