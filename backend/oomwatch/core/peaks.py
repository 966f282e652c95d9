"""One finished step on one GPU: what of its memory can be compared from step to step.

The raw line is a sawtooth. What is comparable is the peak and the floor of each phase, so a step is cut by its phases
(core/phases.py) and each cut is searched for its highest and lowest reading.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from oomwatch.core.envelope import Extremes


class PhaseMemory:
    """Device memory in each phase of one step, in the order in which they first ran.

    Packed, for a GPU keeps many steps with many phases: their names once for all that have the same, and figures in the
    single precision of the readings that they come from (core/envelope.py). Ten phases take 0.2 KiB in place of 1.8.
    """

    __slots__ = ("_figures", "names")

    def __init__(self, told: Mapping[str, Extremes]) -> None:
        self.names = _one_for_all(tuple(told))
        self._figures = array("f", [*(one.high for one in told.values()), *(one.low for one in told.values())])

    @property
    def peaks(self) -> Sequence[float]:
        """The highest reading of each, in bytes."""
        return self._figures[: len(self.names)]

    def peak_of(self, name: str) -> float | None:
        return self._figures[self.names.index(name)] if name in self.names else None

    def floor_of(self, name: str) -> float | None:
        return self._figures[len(self.names) + self.names.index(name)] if name in self.names else None


@lru_cache(maxsize=1024)
def _one_for_all(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


NO_PHASES = PhaseMemory({})


class GpuStep(NamedTuple):
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
    held: Mapping[str, float | None] | None = None  # bytes of each kind of process, as core/likemoments.py has it

    def peak_of(self, phase: str) -> float | None:
        return self.phases.peak_of(phase)

    def floor_of(self, phase: str) -> float | None:
        return self.phases.floor_of(phase)

    def held_by(self, kind: str) -> float | None:
        """Bytes at the moments at which this kind is compared; a kind that was in no process table held nothing."""
        return None if self.held is None else self.held.get(kind, 0.0)


class Block(NamedTuple):
    """A span of time without regard to steps, for programs that tell of none."""

    at: float  # its start
    peak_bytes: float
    floor_bytes: float


def usual_of(steps: Iterable[GpuStep]) -> list[GpuStep]:
    """The steps that say what is usual, of the last segment among them, oldest first."""
    known = list(steps)
    return [one for one in known if one.usual and one.segment == known[-1].segment]
