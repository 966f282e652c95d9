"""Tight but steady: the peaks have stopped rising, so that what is left has been enough for a while.

A packed card is how a good configuration looks. What warns is a new peak.
"""

from collections.abc import Sequence

RISEN_RATIO = 0.01  # of the card: a peak so much above those before it is a new one


def is_steady(peaks: Sequence[float], now: float, *, count: int) -> bool | None:
    """Whether the last `count` peaks (shares of the card, oldest first) brought no new one, nor does the value now.

    The newer half is held against the older one, so that a slow climb is a new peak too. None: there are fewer peaks.
    """
    recent = peaks[-count:]
    if recent and now > max(recent) + RISEN_RATIO:
        return False
    if len(recent) < count:
        return None
    half = max(1, count // 2)
    return max(recent[half:], default=now) <= max(recent[:half]) + RISEN_RATIO
