"""The two wheels, and environments that hold one of them, what it asks for, and nothing else."""

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {"oomwatch": ROOT, "oomwatch-agent": ROOT / "agent"}
# What a person who installs a wheel has: none of the checkout's paths, none of this session's settings.
ENVIRON = {name: text for name, text in os.environ.items() if not name.startswith(("OOMWATCH_", "PYTHON"))}


class Wheel(NamedTuple):
    path: Path

    @property
    def files(self) -> frozenset[str]:
        """Those that are installed beside the metadata."""
        with zipfile.ZipFile(self.path) as archive:
            return frozenset(name for name in archive.namelist() if ".dist-info/" not in name)

    @property
    def metadata(self) -> Message:
        return Parser().parsestr(self.info("METADATA"))

    def info(self, name: str) -> str:
        """A file of the metadata."""
        with zipfile.ZipFile(self.path) as archive:
            (found,) = [one for one in archive.namelist() if one.endswith(f".dist-info/{name}")]
            return archive.read(found).decode()

    def requirements(self, extra: str = "") -> tuple[Requirement, ...]:
        """What it asks for, with an extra or without."""
        wishes = [Requirement(text) for text in self.metadata.get_all("Requires-Dist", [])]
        return tuple(wish for wish in wishes if _applies(wish, frozenset({extra})))


def build(folder: Path) -> dict[str, Wheel]:
    """Both wheels, by project, made as `make wheels` makes them. Nothing is downloaded."""
    for source in PROJECTS.values():
        program = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
        told = subprocess.run(program, env=ENVIRON, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr
    made = {path.name.partition("-")[0].replace("_", "-"): Wheel(path) for path in folder.glob("*.whl")}
    assert made.keys() == PROJECTS.keys()
    return made


def environment(folder: Path, *wheels: Wheel, extra: str = "") -> Path:
    """A new virtual environment's bin folder. This one lends what the wheels ask for, so that no network is needed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, env=ENVIRON)
    (site,) = folder.glob("lib/python*/site-packages")
    ours = {wheel.metadata["Name"] for wheel in wheels}
    asked = {wish for wheel in wheels for wish in wheel.requirements(extra) if wish.name not in ours}
    for name in sorted(_closure(asked)):
        for entry in _top_entries(name):
            if not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    _pip(folder, "install", "--no-index", "--no-deps", *(str(wheel.path) for wheel in wheels))
    _pip(folder, "check")
    return folder / "bin"


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command, started in a folder that is not the checkout's."""
    return subprocess.run(command, cwd=folder, env=ENVIRON, capture_output=True, text=True, check=False, timeout=120)


def _pip(folder: Path, *arguments: str) -> None:
    program = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin/python")]
    told = subprocess.run([*program, *arguments], env=ENVIRON, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def _closure(wishes: set[Requirement]) -> set[str]:
    """The distributions that these wishes come to, with all that those ask for in turn."""
    found: set[str] = set()
    waiting = [(wish.name, frozenset(wish.extras)) for wish in wishes]
    while waiting:
        name, extras = waiting.pop()
        if name.lower() in found and not extras:
            continue
        found.add(name.lower())
        asked = [Requirement(text) for text in importlib.metadata.requires(name) or ()]
        waiting += [(wish.name, frozenset(wish.extras)) for wish in asked if _applies(wish, extras | {""})]
    return found


def _applies(wish: Requirement, extras: frozenset[str]) -> bool:
    return wish.marker is None or any(wish.marker.evaluate({"extra": extra}) for extra in extras or {""})


def _top_entries(name: str) -> Iterator[Path]:
    """What a distribution has put into site-packages."""
    distribution = importlib.metadata.distribution(name)
    names = {file.parts[0] for file in distribution.files or ()}
    yield from (Path(str(distribution.locate_file(top))) for top in sorted(names - {"..", "__pycache__"}))
