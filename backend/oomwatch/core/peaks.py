"""One finished step on one GPU: what of its memory can be compared from step to step.

The raw line is a sawtooth. What is comparable is the peak and the floor of each phase, so a step is cut by its phases
(core/phases.py) and each cut is searched for its highest and lowest reading.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from oomwatch.core.phases import How


class PhasePeak(NamedTuple):
    """Device memory in one phase of one step."""

    phase: str
    peak_bytes: float
    floor_bytes: float
    how: How


class GpuStep(NamedTuple):
    """What one step of training was on one GPU. None: not told, or no reading in it."""

    at: float  # when the step's line was read
    step: int
    segment: int  # counts restarts
    usual: bool  # no warm-up, no first step after a resume
    seconds: float | None
    peak_bytes: float | None = None  # device memory over the whole step
    floor_bytes: float | None = None
    phases: tuple[PhasePeak, ...] = ()
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
        return next((one.peak_bytes for one in self.phases if one.phase == phase), None)

    def floor_of(self, phase: str) -> float | None:
        return next((one.floor_bytes for one in self.phases if one.phase == phase), None)

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
