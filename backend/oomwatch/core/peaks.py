"""One finished step on one GPU: what of its memory can be compared from step to step.

The raw line is a sawtooth. What is comparable is the peak and the floor of each phase, so a step is cut by its phases
(core/phases.py) and each cut is searched for its highest and lowest reading.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from oomwatch.core.envelope import Extremes

# Of steps, a site keeps some ten thousand: so they are Structs that the garbage collector passes over (they hold no
# circles), and packed. One of eight phases takes 0.5 KiB, and as tuples and dictionaries it took 1.6.


class PhaseMemory(Struct, frozen=True, gc=False):
    """Device memory in each phase of one step, in the order in which they first ran.

    Names are the same objects for all that have the same, and figures of the single precision of the readings that they
    come from (core/envelope.py).
    """

    names: tuple[str, ...]
    figures: "array[float]"  # the highest reading of each, in bytes, and then the lowest

    @staticmethod
    def of(told: Mapping[str, Extremes]) -> "PhaseMemory":
        """Packed."""
        highs, lows = [one.high for one in told.values()], [one.low for one in told.values()]
        return PhaseMemory(_one_for_all(tuple(told)), array("f", highs + lows))

    @property
    def peaks(self) -> Sequence[float]:
        """The highest reading of each, in bytes."""
        return self.figures[: len(self.names)]

    def peaks_by_name(self) -> Iterator[tuple[str, float]]:
        """Each phase, in the order in which they first ran, with its highest reading."""
        return zip(self.names, self.peaks, strict=True)

    def peak_of(self, name: str) -> float | None:
        return self.figures[self.names.index(name)] if name in self.names else None

    def floor_of(self, name: str) -> float | None:
        return self.figures[len(self.names) + self.names.index(name)] if name in self.names else None


@lru_cache(maxsize=1024)
def _one_for_all(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


NO_PHASES = PhaseMemory.of({})


class Held(Struct, frozen=True, kw_only=True, gc=False):
    """Bytes of each kind of process on a GPU (core/parts.py) in one step, as core/likemoments.py compares them.

    None: no process table was read at any of the moments of this kind. One that was in no table held nothing.
    """

    engine: float | None = 0.0
    trainer: float | None = 0.0
    stranger: float | None = 0.0
    unknown: float | None = 0.0


class GpuStep(Struct, frozen=True, gc=False):
    """What one step of training was on one GPU. None: not told, or no reading in it."""

    at: float  # when the step's line was read
    step: int
    segment: int  # counts restarts
    usual: bool  # no warm-up, no first step after a resume
    seconds: float | None
    peak_bytes: float | None = None  # device memory over the whole step
    floor_bytes: float | None = None
    phases: PhaseMemory = NO_PHASES
    length_mean_tokens: float | None = None
    length_max_tokens: float | None = None
    clip_ratio: float | None = None
    tokens_total: float | None = None
    reserved_peak_bytes: float | None = None  # torch, of all the processes on the GPU
    allocated_peak_bytes: float | None = None
    allocated_floor_bytes: float | None = None  # what stays between the phases
    slack_bytes: float | None = None  # smallest reserved minus allocated while torch's figures could be believed
    lifetime_peak_bytes: float | None = None  # the step line's own maximum: it can only rise
    residue_bytes: float | None = None  # in use after the engine slept, as its sleep line says
    asleep_bytes: float | None = None  # in use at the trainer's memory lines of moments when the engine sleeps
    retries: int | None = None  # of the allocator, in this step
    held: Held | None = None  # None: no process table was read in it

    def peak_of(self, phase: str) -> float | None:
        return self.phases.peak_of(phase)

    def floor_of(self, phase: str) -> float | None:
        return self.phases.floor_of(phase)

    def held_by(self, kind: str) -> float | None:
        """Bytes at the moments at which this kind is compared."""
        found: float | None = None if self.held is None else getattr(self.held, kind)
        return found


class Block(NamedTuple):
    """A span of time without regard to steps, for programs that tell of none."""

    at: float  # its start
    peak_bytes: float
    floor_bytes: float


def usual_of(steps: Iterable[GpuStep]) -> list[GpuStep]:
    """The steps that say what is usual, of the last segment among them, oldest first."""
    known = list(steps)
    return [one for one in known if one.usual and one.segment == known[-1].segment]
