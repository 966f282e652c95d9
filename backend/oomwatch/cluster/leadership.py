"""Which replica delivers: the holder of the lease. Asked every second, in a thread of its own.

Where the database is gone the last holder goes on, for people must be told then too, until it hears another that leads.
When the database is back it may ask first.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from oomwatch.cluster.members import Members
from oomwatch.oserror import in_words
from oomwatch.service.journal import Call
from oomwatch.tasks import end

LOOK_SECONDS = 1.0
CLAIM_SECONDS = 2.0  # between saying that one leads and doing so, for whoever is not heard of
# The same where another is heard that leads: it looks every second, and lets a message that is on its way arrive
# (notify.notifier.STOP_SECONDS, 3 s). What it had not sent by then is found in the database.
HANDOVER_SECONDS = 5.0
OTHERS_WAIT_SECONDS = 3.0  # after the database was gone

logger = logging.getLogger(__name__)


class Lease(Protocol):
    """store.lease.Lease. The methods block for a bounded time, and raise where the database cannot be asked."""

    def try_take(self) -> bool: ...

    def is_held(self) -> bool: ...

    def release(self) -> None: ...


class Leadership:
    """`clock` gives Unix seconds, `steady` those that nobody sets; `claim` tells the others at once."""

    def __init__(
        self,
        lease: Lease,
        call: Call,
        members: Members,
        claim: Callable[[], None],
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._lease = lease
        self._call = call
        self._members = members
        self._claim = claim
        self._clock = clock
        self._steady = steady
        self.since: float | None = None  # Unix seconds; None: another leads, or nobody
        self.holds = False
        self.problem: str | None = None
        self._is_stopped = False
        self._duty_at: float | None = None  # when we may begin
        self._gone = False  # the database could not be asked
        self._back_at = float("-inf")

    @property
    def leads(self) -> bool:
        """Whether we deliver."""
        return self._duty_at is not None and self._steady() >= self._duty_at

    def leader(self) -> str | None:
        """Who leads, as far as we know: we, or the one that is heard to say so."""
        if self.leads:
            return self._members.me
        claim = self._members.leader_but_me(self._steady())
        return None if claim is None else claim[0]

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Once. A database that cannot be asked makes nobody leader, and ends nobody's term."""
        if self._is_stopped:
            return
        try:
            if self.holds:
                self.holds = await self._call(self._lease.is_held)
            if not self.holds and self._may_ask():
                self.holds = await self._call(self._lease.try_take)
        except Exception as error:
            self._note_loss(in_words(error))
        else:
            self._note_answer()
        self._decide()

    def _may_ask(self) -> bool:
        return self.since is not None or self._steady() - self._back_at >= OTHERS_WAIT_SECONDS

    def _note_loss(self, problem: str) -> None:
        if not self._gone:
            logger.warning("the lease cannot be asked for: %s", problem)
        self.holds, self._gone, self.problem = False, True, problem

    def _note_answer(self) -> None:
        if self._gone:
            self._back_at = self._steady()
        self._gone, self.problem = False, None

    def _decide(self) -> None:
        other = self._members.leader_but_me(self._steady())
        if self.holds and self.since is None:
            self._begin()
        elif self.since is not None and not self.holds:
            overruled = other is not None and other[1] > self.since
            if overruled or not self._gone:
                self._end("another replica has the lease")

    def _begin(self) -> None:
        self.since = self._clock()
        now = self._steady()
        is_heard = self._members.leader_but_me(now) is not None
        self._duty_at = now + (HANDOVER_SECONDS if is_heard else CLAIM_SECONDS)
        logger.info("this replica leads: it delivers, and keeps house")
        self._claim()

    def _end(self, why: str) -> None:
        self.since = self._duty_at = None
        logger.warning("this replica leads no more: %s", why)

    def step_down(self) -> None:
        """We stop, and lead no more; nobody else does before `give_up`."""
        self._is_stopped, self.since, self._duty_at = True, None, None

    async def give_up(self) -> None:
        """Another may begin."""
        self.step_down()
        try:
            await self._call(self._lease.release)
        except Exception as error:  # the database frees it with the connection
            logger.debug("the lease could not be given back: %s", error)

    async def while_leading(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do this whenever we lead, and not otherwise, until cancelled. Raises what the work raises."""
        while True:
            await self._until(leading=True)
            task = asyncio.create_task(work())
            ending = asyncio.create_task(self._until(leading=False))
            try:
                await asyncio.wait([task, ending], return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    task.result()
            finally:
                await end([task, ending])

    async def _until(self, *, leading: bool) -> None:
        while self.leads is not leading:  # noqa: ASYNC110 - time alone may begin it
            await asyncio.sleep(LOOK_SECONDS / 10)
