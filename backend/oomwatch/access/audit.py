"""What people had the server do: who, from where, what, and whether it was done."""

import logging
from collections import deque

import msgspec

from oomwatch import wire

# A minute of ten a second while the database cannot be written; what finds no room stands in the server's log alone.
WAITING_MAX = 600
BODY_CHARS_MAX = 2000

logger = logging.getLogger(__name__)


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """One request that changes something. `at` in Unix seconds; `who`: the token's name, or "anyone"."""

    at: float
    who: str
    role: str
    address: str
    method: str
    path: str
    status: int


class AuditLog:
    """Deeds that are yet to be stored. Used from the event loop only."""

    def __init__(self) -> None:
        self._waiting: deque[Deed] = deque()
        self.dropped_total = 0

    def add(self, deed: Deed) -> None:
        """Note one. It is in the server's log at once."""
        logger.info("%s (%s, %s): %s %s: %d", deed.who, deed.role, deed.address, deed.method, deed.path, deed.status)
        if len(self._waiting) >= WAITING_MAX:
            self.dropped_total += 1
            return
        self._waiting.append(deed)

    def take(self) -> list[Deed]:
        """What waits; it waits no more."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def put_back(self, deeds: list[Deed]) -> None:
        """They could not be stored, and wait again."""
        self._waiting.extendleft(reversed(deeds))


def deed(at: float, who: str, role: str, address: str, request: tuple[str, str], status: int) -> Deed:
    """One deed, its texts no longer than a row holds. `request`: method and path."""
    method, path = request
    return Deed(
        at=at, who=who, role=role, address=address[: wire.NAME_CHARS_MAX], method=method[:20],
        path=path[:BODY_CHARS_MAX], status=status,
    )  # fmt: skip
