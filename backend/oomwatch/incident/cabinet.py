"""The reports in a PostgreSQL, where every server that shares it finds them; a page is drawn when it is asked for."""

import logging
from typing import Protocol

import msgspec

from oomwatch import wire
from oomwatch.incident.folder import Folder
from oomwatch.incident.page import page
from oomwatch.incident.report import Entry, Incident, entry_of
from oomwatch.store.store import Store

logger = logging.getLogger(__name__)


class Reports(Protocol):
    """Where reports are kept, the newest so many: a folder or a cabinet. Every method blocks.

    Those of a folder that write raise OSError, all of a cabinet's StoreError.
    """

    def write(self, incident: Incident, page: str) -> None: ...

    def ids(self) -> list[str]:
        """Of every report, newest first."""
        ...

    def entries(self) -> list[Entry]:
        """The list, newest first."""
        ...

    def read(self, incident: str) -> bytes | None:
        """The report's JSON; None where there is none."""
        ...

    def page(self, incident: str) -> bytes | None:
        """The report's page; None where there is none."""
        ...

    def where(self, incident: str) -> str:
        """Its page, for a person to find."""
        ...


class Cabinet:
    """See the module. `language`: of pages that are asked for in none."""

    def __init__(self, store: Store, keep: int, language: wire.Language = "en") -> None:
        self._store = store
        self._keep = keep
        self._language: wire.Language = language

    def write(self, incident: Incident, page: str) -> None:  # noqa: ARG002 - it is drawn when it is asked for
        """Keep a report, and let the oldest go."""
        entry, report = msgspec.json.encode(entry_of(incident)), msgspec.json.encode(incident)
        self._store.keep_report(incident.id, entry, report, self._keep)

    def take_in(self, folder: Folder) -> None:
        """Reports that were files before: those that would be among the newest are kept here too."""
        known = set(self.ids())
        for incident in sorted(known.union(folder.ids()), reverse=True)[: self._keep]:
            if incident not in known:
                self._take_in_one(incident, folder.read(incident))

    def _take_in_one(self, incident: str, report: bytes | None) -> None:
        try:
            self.write(msgspec.json.decode(report or b"", type=Incident), "")
        except msgspec.DecodeError as error:
            logger.warning("the report of incident %s in the folder is damaged, and stays there: %s", incident, error)

    def ids(self) -> list[str]:
        return [incident for incident, _ in self._store.reports()]

    def entries(self) -> list[Entry]:
        return [msgspec.json.decode(entry, type=Entry) for _, entry in self._store.reports()]

    def read(self, incident: str) -> bytes | None:
        return self._store.report(incident)

    def page(self, incident: str) -> bytes | None:
        report = self.read(incident)
        return None if report is None else page(msgspec.json.decode(report, type=Incident), self._language).encode()

    def where(self, incident: str) -> str:
        return f"/api/v1/incidents/{incident}.html at any server"
