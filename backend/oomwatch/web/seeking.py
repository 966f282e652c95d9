"""Sessions that another server has only just begun: found in the database before it is looked at anyway.

Whoever makes texts up must neither keep the database busy nor stand in the way of those who have signed in.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from oomwatch.access.addresses import home
from oomwatch.access.keyring import Keyring
from oomwatch.access.person import Session
from oomwatch.access.token import Token, digest_of
from oomwatch.store.store import StoreError

LOOKS_AT_ONCE = 2  # as many as there are threads that read
WAITING_MAX = 64
OF_ONE_ADDRESS_MAX = 4  # a browser that asks for several things at once looks for one session
WAIT_SECONDS = 5.0
MISSED_SECONDS = 2.0  # by then the keyring has looked for itself
MISSED_MAX = 10_000

Look = Callable[[str], Awaitable[Session | None]]


class Seeker:
    """Used from the event loop only. `look` finds a session by its digest; `clock` never jumps."""

    def __init__(
        self,
        keyring: Keyring,
        look: Look,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._keyring = keyring
        self._look = look
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._turns = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._of_owner: Counter[str] = Counter()
        self._missed_at: dict[str, float] = {}

    async def seek(self, text: str, address: str) -> Token | None:
        """What a session's text lets do that somebody at this address shows; None: nothing, as far as we know now."""
        digest = digest_of(text)
        search = self._under_way.get(digest) or self._begin(digest, home(address))
        if search is None:
            return None
        await asyncio.wait({search}, timeout=self._wait_seconds)
        return self._keyring.find(text)

    def _begin(self, digest: str, owner: str) -> asyncio.Task[None] | None:
        is_too_much = self._of_owner[owner] >= OF_ONE_ADDRESS_MAX or len(self._under_way) >= WAITING_MAX
        if is_too_much or self._was_missed(digest):
            return None
        self._of_owner[owner] += 1
        search = self._under_way[digest] = asyncio.create_task(self._search(digest, owner))
        return search

    async def _search(self, digest: str, owner: str) -> None:
        try:
            async with self._turns:
                session = await self._look(digest)
            if session is None:
                self._missed_at[digest] = self._clock()
            else:
                self._keyring.sessions.begin(session)
        except StoreError:
            return  # it may be there: the next request asks again
        finally:
            del self._under_way[digest]
            self._of_owner[owner] -= 1
            self._of_owner += Counter()  # those of none are forgotten

    def _was_missed(self, digest: str) -> bool:
        now = self._clock()
        while self._missed_at and (len(self._missed_at) > MISSED_MAX or self._is_old(now)):
            self._missed_at.pop(next(iter(self._missed_at)))
        return digest in self._missed_at

    def _is_old(self, now: float) -> bool:
        return now - next(iter(self._missed_at.values())) >= MISSED_SECONDS
