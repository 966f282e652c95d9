"""How far a peak may be from what is expected of it."""

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

from oomwatch.plan.memory.part import Part, held, total

# Published peaks lie more often above an estimate than below it: whatever a formula does not know comes on top. What an
# engine takes is bounded by its share.
_LEAST_BELOW_RATIO, _LEAST_ABOVE_RATIO, _LEAST_OF_ENGINE_RATIO = 0.12, 0.18, 0.06
MOST_RATIO = 0.20
# Parts err together: what one formula leaves out, the next does too.
_TOGETHER = 1.5


class Reach(NamedTuple):
    """Of an interval, as shares of what is expected."""

    below: float
    above: float


def reach(parts: Iterable[Part]) -> Reach:
    """The larger the share of parts that are not exact, the wider; never more than a fifth either way."""
    known = tuple(parts)
    expected = total(known)
    if expected <= 0:
        return Reach(_LEAST_BELOW_RATIO, _LEAST_ABOVE_RATIO)
    spread = _TOGETHER * sqrt(sum((part.spread * part.bytes) ** 2 for part in known)) / expected
    engine = held(known, "engine") / expected
    least = (_between(engine, _LEAST_BELOW_RATIO), _between(engine, _LEAST_ABOVE_RATIO))
    return Reach(*(max(ratio, min(MOST_RATIO, spread)) for ratio in least))


def _between(engine_share: float, ratio: float) -> float:
    """The least ratio of a peak of which the engine holds so much."""
    return engine_share * _LEAST_OF_ENGINE_RATIO + (1 - engine_share) * ratio
