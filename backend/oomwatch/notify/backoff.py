"""How long to leave a channel alone after it failed. Pure."""

from collections.abc import Callable
from typing import TypeAlias

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 300.0

Patience: TypeAlias = Callable[[int], float]
"""How many seconds to wait after so many failures in a row."""


def pause_seconds(failures: int, chance: float, *, asked_seconds: float | None = None) -> float:
    """1 s after the first failure in a row, doubling up to 5 minutes, and never less than the receiver asked for.

    `chance` (0 to 1) shortens it by up to a half, so that many servers do not come back at the same moment.
    """
    doubled = FIRST_SECONDS * 2.0 ** min(failures - 1, 30)
    pause = min(doubled, LONGEST_SECONDS) * (1 - chance / 2)
    return max(pause, asked_seconds or 0.0)
