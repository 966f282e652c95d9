"""The sessions of browsers that are good now, and when each was last used.

The database has them too, for a restart and for the other servers of a cluster; what is begun and ended here counts
here at once. A session is in use as long as a page of it is open.
"""

from collections.abc import Callable, Container
from typing import NamedTuple

from oomwatch.access.person import Lasts, Session, as_token
from oomwatch.access.token import Token


class Known(NamedTuple):
    """What the database said when it was asked, at `asked_at` (Unix seconds)."""

    sessions: tuple[Session, ...] = ()
    has_users: bool = False
    asked_at: float = 0.0


class Sessions:
    """Used from the event loop only. `clock` gives Unix seconds."""

    def __init__(self, lasts: Lasts, clock: Callable[[], float]) -> None:
        self.lasts = lasts
        self._clock = clock
        self._by_digest: dict[str, Session] = {}
        self._used_at: dict[str, float] = {}  # by id, what the database need not know yet
        self._untold: set[str] = set()  # ids whose use it has not been told
        self._begun_at: dict[str, float] = {}  # by digest, what an answer that was asked for earlier cannot hold
        self._ended_at: dict[str, float] = {}

    def begin(self, session: Session) -> None:
        """Somebody has signed in. A session that another server began is taken over by this too."""
        self._by_digest[session.digest] = session
        self._begun_at[session.digest] = self._clock()

    def end(self, digest: str) -> None:
        """Somebody has signed out."""
        if self._by_digest.pop(digest, None) is not None:
            self._ended_at[digest] = self._clock()

    def replace(self, known: Known, held: Container[str]) -> None:
        """Take over what the database keeps. `held`: ids of tokens that open pages are connected by."""
        self._begun_at = {digest: at for digest, at in self._begun_at.items() if at >= known.asked_at}
        self._ended_at = {digest: at for digest, at in self._ended_at.items() if at >= known.asked_at}
        own = {digest: one for digest, one in self._by_digest.items() if digest in self._begun_at}
        told = {one.digest: one for one in known.sessions if one.digest not in self._ended_at}
        self._by_digest = own | told
        ids = {one.id for one in self._by_digest.values()}
        self._used_at = {one: at for one, at in self._used_at.items() if one in ids}
        self._untold &= ids
        for session in self._by_digest.values():
            if self._token(session).id in held:
                self._use(session)

    def find(self, digest: str) -> Token | None:
        """What the session of this digest lets do, where it is good. It is used by that."""
        session = self._by_digest.get(digest)
        if session is None or not self._token(session).is_good(self._clock()):
            return None
        self._use(session)
        return self._token(session)

    def good_ids(self) -> set[str]:
        """Of the tokens of those that are good."""
        now = self._clock()
        tokens = [self._token(session) for session in self._by_digest.values()]
        return {token.id for token in tokens if token.is_good(now)}

    def take_used(self) -> dict[str, float]:
        """By id, when those were used whose use was not taken yet."""
        taken = {one: self._used_at[one] for one in self._untold if one in self._used_at}
        self._untold.clear()
        return taken

    def _use(self, session: Session) -> None:
        self._used_at[session.id] = self._clock()
        self._untold.add(session.id)

    def _token(self, session: Session) -> Token:
        return as_token(session, self.lasts, max(session.used_at, self._used_at.get(session.id, 0.0)))
