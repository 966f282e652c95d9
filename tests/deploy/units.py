"""systemd's units as lists of what they set."""

import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/systemd"
HOME = "/opt/oomwatch/bin/"


class Unit(NamedTuple):
    path: Path
    settings: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.settings if key == name]

    def one(self, name: str) -> str:
        (value,) = self.all(name)
        return value

    def environ(self) -> dict[str, str]:
        pairs = (value.partition("=") for value in self.all("Environment"))
        return {name: value for name, _, value in pairs}

    def command(self) -> list[str]:
        return shlex.split(self.one("ExecStart"))


def unit(name: str) -> Unit:
    path = FOLDER / f"oomwatch-{name}.service"
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    settings = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return Unit(path, tuple((key, value) for key, _, value in settings))
