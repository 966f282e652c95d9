"""The table of members: this replica's line in it, and who else is there. The second way to see who is alive."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from oomwatch.cluster.members import Members
from oomwatch.oserror import in_words
from oomwatch.service.journal import Call

BEAT_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Row(Protocol):
    @property
    def replica(self) -> str: ...
    @property
    def seen_seconds_ago(self) -> float: ...


class Table(Protocol):
    """What is used of the store. The methods block, and raise StoreError."""

    def beat(self, replica: str, address: str, started_at: float) -> None: ...

    def members(self) -> Sequence[Row]: ...

    def leave(self, replica: str) -> None: ...


class Rolls:
    """`greet`: called where there is one that was not there before."""

    def __init__(
        self,
        table: Table,
        call: Call,
        members: Members,
        *,
        address: str,
        started_at: float,
        steady: Callable[[], float],
        greet: Callable[[], None],
    ) -> None:
        self._table = table
        self._call = call
        self._members = members
        self._address = address
        self._started_at = started_at
        self._steady = steady
        self._greet = greet
        self.problem: str | None = "not asked yet"
        self._is_stopped = False

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not self._is_stopped:
                await self.beat()
            await asyncio.sleep(BEAT_SECONDS)

    async def beat(self) -> None:
        """Once."""
        try:
            await self._call(self._table.beat, self._members.me, self._address, self._started_at)
            rows: Sequence[Row] = await self._call(self._table.members)
        except Exception as error:  # whatever it is, nobody is seen by this way
            if self.problem is None:
                logger.warning("the table of members cannot be written: %s", in_words(error))
            self.problem = in_words(error)
            return
        self.problem = None
        seen = {row.replica: row.seen_seconds_ago for row in rows if row.replica != self._members.me}
        if self._members.stored(seen, self._steady()):
            self._greet()

    async def leave(self) -> None:
        """We stop."""
        self._is_stopped = True
        try:
            await self._call(self._table.leave, self._members.me)
        except Exception as error:  # the line goes by itself
            logger.debug("the table of members could not be left: %s", error)
