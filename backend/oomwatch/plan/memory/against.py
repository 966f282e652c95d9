"""A live run's peaks against what was estimated of it."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from oomwatch.plan.memory.estimate import Estimate


class Compared(Struct, frozen=True, kw_only=True):
    """One phase: device memory at its peak, measured and expected."""

    phase: str
    measured_bytes: int
    low_bytes: int
    expected_bytes: int
    high_bytes: int

    @property
    def error_ratio(self) -> float:
        """Of the estimate: above 0 where it said too much."""
        return self.expected_bytes / self.measured_bytes - 1

    @property
    def is_above(self) -> bool:
        return self.measured_bytes > self.high_bytes

    @property
    def is_below(self) -> bool:
        return self.measured_bytes < self.low_bytes


def compared(estimate: Estimate, measured_bytes: Mapping[str, float]) -> Iterator[Compared]:
    """The phases that were both estimated and measured, in the order of a step. What is 0 or less was not measured."""
    for phase in estimate.phases:
        measured = measured_bytes.get(phase.phase)
        if measured is not None and measured > 0:
            yield Compared(
                phase=phase.phase,
                measured_bytes=round(measured),
                low_bytes=phase.low_bytes,
                expected_bytes=phase.expected_bytes,
                high_bytes=phase.high_bytes,
            )


def outside(estimate: Estimate, measured_bytes: Mapping[str, float]) -> tuple[Compared, ...]:
    """The phases whose peak lies outside of the interval."""
    return tuple(phase for phase in compared(estimate, measured_bytes) if phase.is_above or phase.is_below)
