"""Device memory in blocks of five minutes, for programs that tell of no steps."""

from array import array
from collections.abc import Sequence
from math import floor

from oomwatch.core.peaks import Block

FIVE_SECONDS = 300.0
BLOCKS_KEPT = 72  # six hours
MINUTE_SECONDS = 60.0  # so often a block that still runs is worth another look


class BlockWindow:
    """The highest and lowest reading of each block, on the grid of the clock that the readings bear.

    Closed ones are kept in three arrays, 24 bytes each.
    """

    __slots__ = ("_at", "_floors", "_minute", "_peaks", "open")

    def __init__(self) -> None:
        self._at, self._peaks, self._floors = array("d"), array("d"), array("d")
        self.open: Block | None = None  # the block that still runs
        self._minute = 0.0  # of the last reading

    def add(self, at: float, value: float) -> bool:
        """Take a reading in. True: it is the first of another minute; it may have closed a block."""
        running, before, minute = self.open, self._minute, at // MINUTE_SECONDS
        if running is None or not (
            running.at <= at < running.at + FIVE_SECONDS and running.floor_bytes <= value <= running.peak_bytes
        ):  # else it is as nearly every reading
            self._take(at, value)
        if minute <= before:
            return False
        self._minute = minute
        return before > 0

    def extend(self, times: Sequence[float], values: Sequence[float]) -> None:
        """The same for several, at once where all are of the running minute and block."""
        running = self.open
        if (
            running is None
            or min(times) < running.at
            or max(times) >= min(running.at + FIVE_SECONDS, (self._minute + 1) * MINUTE_SECONDS)
        ):
            for at, value in zip(times, values, strict=True):
                self.add(at, value)
            return
        lowest, highest = min(values), max(values)
        if lowest < running.floor_bytes or highest > running.peak_bytes:
            self.open = Block(running.at, max(running.peak_bytes, highest), min(running.floor_bytes, lowest))

    def _take(self, at: float, value: float) -> None:
        start = floor(at / FIVE_SECONDS) * FIVE_SECONDS
        running = self.open
        if running is None or start > running.at:
            self.open = Block(start, value, value)
            if running is not None:
                self._close(running)
            return
        if start == running.at:
            self.open = Block(start, max(running.peak_bytes, value), min(running.floor_bytes, value))
        elif self._at and start == self._at[-1]:  # a late reading of the block before
            self._peaks[-1] = max(self._peaks[-1], value)
            self._floors[-1] = min(self._floors[-1], value)

    def _close(self, block: Block) -> None:
        for column, told in zip((self._at, self._peaks, self._floors), block, strict=True):
            column.append(told)
            del column[:-BLOCKS_KEPT]

    def closed(self) -> list[Block]:
        """The closed blocks, oldest first."""
        return [Block(*told) for told in zip(self._at, self._peaks, self._floors, strict=True)]

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much; blocks stay on its grid."""
        whole = round(seconds / FIVE_SECONDS) * FIVE_SECONDS
        self._at = array("d", [at + whole for at in self._at])
        self.open = self.open._replace(at=self.open.at + whole) if self.open else None
        self._minute += whole // MINUTE_SECONDS
