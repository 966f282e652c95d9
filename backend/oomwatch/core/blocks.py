"""Device memory in blocks of five and ten minutes, for programs that tell of no steps."""

from collections import deque
from math import floor

from oomwatch.core.peaks import Block

FIVE_SECONDS, TEN_SECONDS = 300.0, 600.0
BLOCKS_KEPT = 72  # six hours of five minutes
MINUTE_SECONDS = 60.0  # so often a block that still runs is worth another look


class BlockWindow:
    """The highest and lowest reading of each block of five minutes, on the grid of the clock that the readings bear."""

    __slots__ = ("_closed", "_minute", "open")

    def __init__(self) -> None:
        self._closed: deque[Block] = deque(maxlen=BLOCKS_KEPT)
        self.open: Block | None = None  # the block that still runs
        self._minute = 0.0  # of the last reading

    def add(self, at: float, value: float) -> bool:
        """Take a reading in. True: it is the first of another minute; it may have closed a block."""
        before, self._minute = self._minute, max(self._minute, at // MINUTE_SECONDS)
        self._take(at, value)
        return self._minute > before > 0

    def _take(self, at: float, value: float) -> None:
        start = floor(at / FIVE_SECONDS) * FIVE_SECONDS
        running = self.open
        if running is None or start > running.at:
            self.open = Block(start, value, value)
            if running is not None:
                self._closed.append(running)
            return
        if start == running.at and running.floor_bytes <= value <= running.peak_bytes:
            return  # as nearly every reading
        if start == running.at:
            self.open = Block(start, max(running.peak_bytes, value), min(running.floor_bytes, value))
        elif self._closed and start == self._closed[-1].at:  # a late reading of the block before
            last = self._closed[-1]
            self._closed[-1] = Block(start, max(last.peak_bytes, value), min(last.floor_bytes, value))

    def closed(self, seconds: float = FIVE_SECONDS) -> list[Block]:
        """The closed blocks of five or of ten minutes, oldest first."""
        fives = list(self._closed)
        return fives if seconds == FIVE_SECONDS else _tens(fives)

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much; blocks stay on its grid."""
        whole = round(seconds / FIVE_SECONDS) * FIVE_SECONDS
        self._closed = deque((one._replace(at=one.at + whole) for one in self._closed), maxlen=BLOCKS_KEPT)
        self.open = self.open._replace(at=self.open.at + whole) if self.open else None
        self._minute += whole // MINUTE_SECONDS


def _tens(fives: list[Block]) -> list[Block]:
    """Two blocks of five minutes make one of ten. One whose second half is still to come is none yet."""
    tens: list[Block] = []
    for one in fives:
        start = floor(one.at / TEN_SECONDS) * TEN_SECONDS
        if tens and tens[-1].at == start:
            last = tens[-1]
            tens[-1] = Block(start, max(last.peak_bytes, one.peak_bytes), min(last.floor_bytes, one.floor_bytes))
        else:
            tens.append(Block(start, one.peak_bytes, one.floor_bytes))
    return tens[:-1] if fives and fives[-1].at % TEN_SECONDS == 0 else tens
