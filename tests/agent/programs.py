"""Real little programs that stand for the makers' tools."""

import shlex
import stat
from pathlib import Path


class Program:
    """A shell script of a name, which prints what a test writes down and notes how it was called."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.path = folder / name
        self.prints("")

    def prints(self, text: str, *, when: str | None = None) -> None:
        """Print this, for arguments that begin with the word `when` or for any; asked again, it prints the newest."""
        (self.folder / f"{self.path.name}.{when or 'any'}").write_text(text)
        base = shlex.quote(str(self.path))
        self.script(f'[ -f {base}."$1" ] && exec cat {base}."$1"; exec cat {base}.any')

    def script(self, body: str) -> None:
        fresh = self.folder / "fresh"  # a script that is being run must not be written to
        calls = shlex.quote(f"{self.path}.calls")
        fresh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {calls}\n{body}\n')
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
        fresh.replace(self.path)

    def calls(self) -> list[str]:
        noted = Path(f"{self.path}.calls")
        return noted.read_text().splitlines() if noted.exists() else []
