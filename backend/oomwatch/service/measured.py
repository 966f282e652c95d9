"""How long things took, since the start: counts in buckets, as Prometheus' histograms have them."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

# From a tenth of a millisecond (one GPU's reading, judged) to a minute (a frame that waited out a broken network).
BOUNDS_SECONDS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    15.0,
    60.0,
)


class Histogram:
    """It only grows."""

    def __init__(self) -> None:
        self.sum = 0.0
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds, and how many were at most that long."""
        return list(zip(self._bounds(), accumulate(self._counts), strict=True))

    @staticmethod
    def _bounds() -> Iterator[str]:
        yield from (str(bound) for bound in BOUNDS_SECONDS)
        yield "+Inf"
