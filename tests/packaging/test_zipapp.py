"""oomwatch-agent.pyz: one file, an empty folder, a Python that has nothing installed."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from scripts.make_zipapp import PYTHONS, pins, write
from tests.packaging.wheels import ROOT
from tests.packaging.zipped import BARE, SOMEBODY

from oomwatch import __version__


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


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pyz", tmp_path / "second.pyz"
    write(first, {"a": b"1", "b": b"2"})
    write(second, {"b": b"2", "a": b"1"})
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_mode & 0o111


def test_every_python_is_given_the_release_that_the_lock_has_for_it() -> None:
    locked = list(pins((ROOT / "requirements-agent.txt").read_text(encoding="utf-8")))
    for python in PYTHONS:
        names = [pin.requirement.name for pin in locked if pin.is_for(python)]
        assert {"msgspec", "nvidia-ml-py", "pyyaml", "websockets"} <= set(names)
        assert len(names) == len(set(names))
