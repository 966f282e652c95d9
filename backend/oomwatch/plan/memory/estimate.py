"""What is said of a run's memory: a peak for every phase of a step, its interval, and whether it fits."""

from typing import Literal

from msgspec import Struct

from oomwatch.plan.memory.interval import reach
from oomwatch.plan.memory.names import Assumed, MomentName, Trouble
from oomwatch.plan.memory.part import Holder, Part, held, total

Verdict = Literal["fits", "tight", "will_not_fit"]
# Above this share of a card its allocator begins to give back and ask again; of a host, Ray has begun to end workers.
TIGHT_RATIO = 0.97


class PhaseEstimate(Struct, frozen=True, kw_only=True):
    """The device memory of the fullest GPU at the worst moment of a phase, of all processes on it."""

    phase: str  # one of wire.PHASES
    moment: MomentName  # at which it peaks
    low_bytes: int
    expected_bytes: int
    high_bytes: int
    capacity_bytes: int
    verdict: Verdict
    parts: tuple[Part, ...]
    trouble: Trouble | None = None

    @property
    def margin_bytes(self) -> int:
        """What is left of the card; negative where it does not fit."""
        return self.capacity_bytes - self.expected_bytes

    def held_bytes(self, *holders: Holder) -> int:
        """Of some holders alone: what torch calls allocated, or reserved with what it caches."""
        return held(self.parts, *holders)


class HostEstimate(Struct, frozen=True, kw_only=True):
    """Memory of one node's host that the run takes."""

    low_bytes: int
    expected_bytes: int
    high_bytes: int
    parts: tuple[Part, ...]

    def verdict_on(self, capacity_bytes: int) -> Verdict:
        """Whether a node holds it that lets the run take so much."""
        return verdict_on(self.expected_bytes, self.high_bytes, capacity_bytes)


class Estimate(Struct, frozen=True, kw_only=True):
    phases: tuple[PhaseEstimate, ...]  # in the order of a step
    host: HostEstimate
    assumed: tuple[Assumed, ...] = ()

    @property
    def peak(self) -> PhaseEstimate:
        """The phase that needs most, or cannot run at all."""
        return max(self.phases, key=lambda one: (one.trouble is not None, one.expected_bytes))

    @property
    def verdict(self) -> Verdict:
        """Of the whole run: that of its worst phase."""
        verdicts = {phase.verdict for phase in self.phases}
        order: tuple[Verdict, ...] = ("will_not_fit", "tight", "fits")
        return next(verdict for verdict in order if verdict in verdicts or verdict == "fits")

    def phase(self, name: str) -> PhaseEstimate | None:
        return next((phase for phase in self.phases if phase.phase == name), None)


def estimated(
    phase: str, moment: MomentName, parts: tuple[Part, ...], capacity_bytes: int, trouble: Trouble | None = None
) -> PhaseEstimate:
    """The peak of a phase, from the parts of its worst moment."""
    expected, off = total(parts), reach(parts)
    high = round(expected * (1 + off.above))
    return PhaseEstimate(
        phase=phase,
        moment=moment,
        low_bytes=round(expected * (1 - off.below)),
        expected_bytes=expected,
        high_bytes=high,
        capacity_bytes=capacity_bytes,
        verdict="will_not_fit" if trouble else verdict_on(expected, high, capacity_bytes),
        parts=parts,
        trouble=trouble,
    )


def estimated_host(parts: tuple[Part, ...]) -> HostEstimate:
    expected, off = total(parts), reach(parts)
    low, high = round(expected * (1 - off.below)), round(expected * (1 + off.above))
    return HostEstimate(low_bytes=low, expected_bytes=expected, high_bytes=high, parts=parts)


def verdict_on(expected: int, high: int, capacity: int) -> Verdict:
    """Beyond the card, or the host, at what is expected: it does not fit. Beyond it at what is possible: tight."""
    if expected > capacity:
        return "will_not_fit"
    return "tight" if high > capacity * TIGHT_RATIO else "fits"
