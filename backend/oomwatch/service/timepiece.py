"""The one reader of the clock: what time it is, and whether the clock was set or this process stood still."""

import logging
import time
from collections.abc import Callable

PAUSE_SECONDS = 3.0  # nothing ran for longer: the machine or the process stood still, and heard nobody
JUMP_SECONDS = 2.0  # as for the agents' clocks: less is none

logger = logging.getLogger(__name__)


_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_clock() -> float:
    """Seconds that nobody sets. Where the system tells it, the time in which the machine slept counts."""
    return time.clock_gettime(_STEADY)


class Timepiece:
    """Two clocks, compared at each reading. `on_jump` and `on_pause` are told the seconds, before the reading counts.

    `steady_at` is the steady clock at the last reading.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        steady: Callable[[], float],
        on_jump: Callable[[float], None],
        on_pause: Callable[[float], None],
    ) -> None:
        self.clock = clock
        self.steady = steady
        self._on_jump = on_jump
        self._on_pause = on_pause
        self._read_at = clock()
        self.steady_at = steady()

    def now(self) -> float:
        """The time. Whoever comes first after a pause of this process, or after the clock was set, sees to that."""
        now, steady = self.clock(), self.steady()
        elapsed = steady - self.steady_at
        jumped = now - self._read_at - elapsed
        self._read_at, self.steady_at = now, steady
        if abs(jumped) > JUMP_SECONDS:
            logger.warning("the clock of this machine was set by %+.1f s; what was measured by it is corrected", jumped)
            self._on_jump(jumped)
        if elapsed > PAUSE_SECONDS:
            logger.warning("the server stood still for %.1f s; that is no silence of any agent", elapsed)
            self._on_pause(elapsed)
        return now
