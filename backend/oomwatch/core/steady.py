"""Tight but steady: the card has been as full before, and lived.

A packed card is how a good configuration looks. What warns is a new peak.
"""

from collections.abc import Sequence

RISEN_RATIO = 0.01  # of the card: a peak so much above those before it is a new one


def is_steady(peaks: Sequence[float], now: float, *, count: int) -> bool | None:
    """Whether neither the last `count` peaks (shares of the card, oldest first) nor the value now are a new height.

    They are held against all peaks before, so that a slow climb is a new height too. None: there are none before.
    """
    recent, before = peaks[-count:], peaks[:-count]
    if not before:
        return False if recent and now > max(recent) + RISEN_RATIO else None
    return max(now, *recent) <= max(before) + RISEN_RATIO
