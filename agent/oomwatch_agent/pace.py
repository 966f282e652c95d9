"""When the agent reads, and when it tries again. Pure: time and randomness are arguments.

Samples fall on a fixed grid: the wall clock's multiples of the interval, plus an offset of the node's own. The grid
keeps the rhythm free of drift; the offset spreads a thousand agents over the interval instead of letting them all
arrive on the full second. There are twenty offsets: a server that is woken up for several agents at once, which it is
where clocks agree to some milliseconds, takes a sixth less CPU than one that is woken up for each.
"""

import math
import random
import zlib

OFFSETS = 20
SLOW_SECONDS = 10.0  # process tables and the like: dear to read, slow to change

BACKOFF_FIRST_SECONDS = 0.5
BACKOFF_LONGEST_SECONDS = 30.0


def offset_seconds(node: str, interval_seconds: float) -> float:
    """Where within the interval this node reads: from 0 to the interval, the same at every start."""
    return zlib.crc32(node.encode()) % OFFSETS / OFFSETS * interval_seconds


class Pace:
    """The grid of one node. All times are Unix seconds."""

    def __init__(self, node: str, interval_seconds: float, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self._interval = interval_seconds
        self._offset = offset_seconds(node, interval_seconds)
        self._slow_every = max(1, round(slow_seconds / interval_seconds))
        self._last: int | None = None  # number of the grid point that was taken last

    def seconds_to_next(self, now: float) -> float:
        """How long to sleep: more than 0, at most two intervals. Points missed in a stall are skipped."""
        upcoming = math.floor((now - self._offset) / self._interval) + 1
        if upcoming == self._last:  # woken a little before the point that was just taken
            upcoming += 1
        return max(0.001, upcoming * self._interval + self._offset - now)

    def next_is_slow(self, now: float) -> bool:
        """Whether the read at the end of this sleep will be a slow one."""
        return self._is_slow(self._last, self._nearest(now + self.seconds_to_next(now)))

    def take(self, now: float) -> bool:
        """Take the grid point nearest to `now`. True when this read is a slow one: the first in each slow period."""
        before, self._last = self._last, self._nearest(now)
        return self._is_slow(before, self._last)

    def _nearest(self, now: float) -> int:
        return round((now - self._offset) / self._interval)

    def _is_slow(self, before: int | None, number: int) -> bool:
        return before is None or before // self._slow_every != number // self._slow_every


class Backoff:
    """Growing pauses between tries, with jitter, so that agents that lost one server do not return as one."""

    def __init__(
        self,
        jitter: random.Random,
        *,
        first_seconds: float = BACKOFF_FIRST_SECONDS,
        longest_seconds: float = BACKOFF_LONGEST_SECONDS,
    ) -> None:
        self._jitter = jitter
        self._first = first_seconds
        self._longest = longest_seconds
        self._tries = 0

    def next_seconds(self) -> float:
        """The next pause: its upper bound doubles at each try, the pause lies anywhere in the bound's upper half."""
        bound = min(self._longest, self._first * 2 ** (self._tries + 1))
        self._tries = min(self._tries + 1, 30)  # 2**30 is beyond every bound
        return max(self._first, self._jitter.uniform(bound / 2, bound))

    def reset(self) -> None:
        """The other side works: begin with short pauses again."""
        self._tries = 0
