"""How large the database is and how fast it grows: what was measured, for a day."""

from collections import deque
from collections.abc import Callable

import msgspec

from oomwatch.store.sizes import HistorySize, Sizes

DAY_SECONDS = 86_400.0
LEAST_SECONDS = 3600.0  # what an hour brings says little of a day, and less says nothing


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Measured every ten minutes; null: not measured yet. Growth is that since `growth_since_at`, a day ago at most."""

    measured_at: float | None
    database_bytes: int | None
    used_bytes: int | None
    growth_bytes_per_day: float | None
    growth_since_at: float | None
    history: tuple[HistorySize, ...]


NOT_MEASURED = Storage(
    measured_at=None, database_bytes=None, used_bytes=None, growth_bytes_per_day=None, growth_since_at=None, history=()
)


class StorageWatch:
    """Keeps the measurements of a day."""

    def __init__(self) -> None:
        self._used: deque[tuple[float, int]] = deque()
        self.latest = NOT_MEASURED

    def measure(self, read: Callable[[], Sizes], now: float) -> None:
        """Blocks. Raises StoreError."""
        found = read()
        if found.used_bytes is not None:
            self._used.append((now, found.used_bytes))
        while self._used and self._used[0][0] < now - DAY_SECONDS:
            self._used.popleft()
        growth, since = self._growth(now)
        self.latest = Storage(
            measured_at=now,
            database_bytes=found.database_bytes,
            used_bytes=found.used_bytes,
            growth_bytes_per_day=growth,
            growth_since_at=since,
            history=found.history,
        )

    def _growth(self, now: float) -> tuple[float | None, float | None]:
        if not self._used or now - self._used[0][0] < LEAST_SECONDS:
            return None, None
        since, before = self._used[0]
        return (self._used[-1][1] - before) / (now - since) * DAY_SECONDS, since
