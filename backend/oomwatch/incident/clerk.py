"""Writes the reports that are due, off the event loop; what fails costs that report and nothing else."""

import asyncio
import logging

from oomwatch import wire
from oomwatch.incident.cabinet import Reports
from oomwatch.incident.desk import Desk
from oomwatch.incident.gather import Scene, gather, scene
from oomwatch.incident.page import page
from oomwatch.incident.report import Draft
from oomwatch.oserror import with_place
from oomwatch.service.journal import Call, Journal
from oomwatch.service.service import Service
from oomwatch.store.store import Store, StoreError

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 30.0

logger = logging.getLogger(__name__)


class Clerk:
    """`read` runs a blocking call in a thread that reads."""

    def __init__(
        self,
        desk: Desk,
        reports: Reports,
        service: Service,
        store: Store,
        journal: Journal,
        read: Call,
        *,
        language: wire.Language,
    ) -> None:
        self._desk = desk
        self._reports = reports
        self._service = service
        self._store = store
        self._journal = journal
        self._read = read
        self._language = language

    async def run(self) -> None:
        """Look every second, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.write_due()

    async def write_due(self) -> None:
        """Write what is due by now."""
        drafts = self._desk.due(self._service.clock())
        if drafts:
            await self._journal.flush()  # the last readings are part of the story
        for draft in drafts:
            await self._write(draft)

    async def _write(self, draft: Draft) -> None:
        try:
            told = scene(self._service, draft)
            await self._read(self._gather_and_write, draft, told, self._language)
        except StoreError as error:
            logger.warning("the report of incident %s cannot be written yet: %s", draft.id, error)
            self._desk.put_back(draft, self._service.clock() + AGAIN_SECONDS)
        except OSError as error:
            logger.error("the report of incident %s cannot be written: %s", draft.id, with_place(error))  # noqa: TRY400
        except Exception:
            self._service.defects.count()
            logger.exception("the report of incident %s failed; everything else goes on", draft.id)
        else:
            logger.info("incident %s: see %s", draft.id, self._reports.where(draft.id))

    def _gather_and_write(self, draft: Draft, told: Scene, language: wire.Language) -> None:
        incident = gather(self._store, draft, told, self._service.clock())
        self._reports.write(incident, page(incident, language))
