"""The folder of the reports: ID.json and ID.html, the newest so many."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from oomwatch.incident.report import ID, Entry, Incident, entry_of


class Folder:
    """Every method blocks. Those that write raise OSError."""

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        self._keep = keep

    def write(self, incident: Incident, page: str) -> None:
        """Keep a report, whole or not at all, and let the oldest go."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            self._put(f"{incident.id}.html", page.encode())
            self._put(f"{incident.id}.json", msgspec.json.encode(incident))
            self._put(f"{incident.id}.head", msgspec.json.encode(entry_of(incident)))
        except OSError:
            self.remove(incident.id)  # what is on no list would never be let go
            raise
        for old in self.ids()[self._keep :]:
            self.remove(old)

    def _put(self, name: str, content: bytes) -> None:
        part = self.path / f".{name}.part"
        try:
            part.write_bytes(content)
            part.replace(self.path / name)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise

    def ids(self) -> list[str]:
        """Of every report, newest first."""
        try:
            names = os.listdir(self.path)  # noqa: PTH208 - the names alone, sorted below
        except OSError:
            return []
        return sorted((name[:-5] for name in names if name.endswith(".head") and ID.fullmatch(name[:-5])), reverse=True)

    def entries(self) -> list[Entry]:
        """The list, newest first. A file that is damaged is passed over."""
        return list(self._entries())

    def _entries(self) -> Iterator[Entry]:
        for incident in self.ids():
            with contextlib.suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode((self.path / f"{incident}.head").read_bytes(), type=Entry)

    def read(self, incident: str) -> bytes | None:
        """The report's JSON; None where there is none."""
        return self._content(incident, "json")

    def page(self, incident: str) -> bytes | None:
        """The report's page; None where there is none."""
        return self._content(incident, "html")

    def _content(self, incident: str, kind: str) -> bytes | None:
        if not ID.fullmatch(incident):
            return None
        try:
            return (self.path / f"{incident}.{kind}").read_bytes()
        except OSError:
            return None

    def where(self, incident: str) -> str:
        """Its page."""
        return str(self.path / f"{incident}.html")

    def remove(self, incident: str) -> None:
        """Let a report go; what cannot be deleted stays."""
        for kind in ("head", "json", "html"):
            with contextlib.suppress(OSError):
                (self.path / f"{incident}.{kind}").unlink()
