"""The moments at which time itself is judged: whole seconds, each once, whoever calls when."""

from collections.abc import Iterator
from math import floor

GRID_SECONDS = 1.0
GRID_POINTS_MAX = 600  # after a longer standstill the grid is taken up again ten minutes back


class Grid:
    """Where on the grid time stands."""

    def __init__(self) -> None:
        self._at: float | None = None

    def until(self, now: float) -> Iterator[float]:
        """Every grid second since the last one, up to `now`; the first call only says where the grid begins."""
        last = floor(now / GRID_SECONDS) * GRID_SECONDS
        if self._at is None:
            self._at = last
        self._at = max(self._at, last - GRID_POINTS_MAX * GRID_SECONDS)
        while self._at < last:
            self._at += GRID_SECONDS
            yield self._at

    def pass_until(self, now: float) -> None:
        """Nothing happens until then."""
        self._at = floor(now / GRID_SECONDS) * GRID_SECONDS

    def shift(self, seconds: float) -> None:
        """The clock was set by so much: the grid stays one of whole seconds."""
        if self._at is not None:
            self._at += floor(seconds / GRID_SECONDS) * GRID_SECONDS
