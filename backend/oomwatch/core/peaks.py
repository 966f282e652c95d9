"""One finished step on one GPU: what of its memory can be compared from step to step.

The raw line is a sawtooth. What is comparable is the peak and the floor of each phase, so a step is cut by its phases
(core/phases.py) and each cut is searched for its highest and lowest reading.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from oomwatch.core.envelope import Extremes
from oomwatch.core.steps import StepRecord

# Of steps, a site keeps some ten thousand: so they are Structs that the garbage collector passes over (they hold no
# circles), and packed: what one is of and what the run told of it is the same object for all GPUs of the run. One of
# eight phases takes 0.3 KiB, one without 0.2.


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
        if not told:
            return NO_PHASES
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


NO_PHASES = PhaseMemory((), array("f"))


class Figures(NamedTuple):
    """What was read of one step on one GPU. None: not told, or no reading in it."""

    peak_bytes: float | None = None  # device memory over the whole step
    floor_bytes: float | None = None
    reserved_peak_bytes: float | None = None  # torch, of all the processes on the GPU
    allocated_peak_bytes: float | None = None
    allocated_floor_bytes: float | None = None  # what stays between the phases
    slack_bytes: float | None = None  # smallest reserved minus allocated while torch's figures could be believed
    lifetime_peak_bytes: float | None = None  # the step line's own maximum: it can only rise
    residue_bytes: float | None = None  # in use after the engine slept, as its sleep line says
    asleep_bytes: float | None = None  # in use at the trainer's memory lines of moments when the engine sleeps


KINDS = ("engine", "trainer", "stranger", "unknown")  # of processes on a GPU (core/parts.py)
# Their places, in their order.
_PEAK, _FLOOR, _RESERVED_PEAK, _ALLOCATED_PEAK, _ALLOCATED_FLOOR, _SLACK, _LIFETIME_PEAK, _RESIDUE, _ASLEEP = range(
    len(Figures._fields)
)
_UNTOLD = float("nan")
_NO_TABLE = (_UNTOLD,) * len(KINDS)


class GpuStep(Struct, frozen=True, gc=False):
    """What one step of training was on one GPU. None: not told, or no reading in it.

    Its figures are of single precision, as the readings are that most come from: those of Figures, then what each kind
    of process held at the moments at which that kind is compared (core/likemoments.py).
    """

    record: StepRecord
    phases: PhaseMemory
    retries: int | None  # of the allocator, in this step
    figures: "array[float]"
    # Of the record, what is asked for again and again.
    segment: int  # counts restarts
    usual: bool  # no warm-up, no first step after a resume
    length_mean_tokens: float | None
    length_max_tokens: float | None
    tokens_total: float | None

    @staticmethod
    def of(
        record: StepRecord,
        told: Figures,
        *,
        phases: PhaseMemory = NO_PHASES,
        held: Mapping[str, float | None] | None = None,
        retries: int | None = None,
    ) -> "GpuStep":
        """Packed. `held`: None where no process table was read in it; a kind that was in no table held nothing."""
        by_kind = _NO_TABLE if held is None else [held.get(kind, 0.0) for kind in KINDS]
        figures = array("f", [_UNTOLD if one is None else one for one in (*told, *by_kind)])
        step = record.step
        return GpuStep(
            record=record,
            phases=phases,
            retries=retries,
            figures=figures,
            segment=record.segment,
            usual=record.usual,
            length_mean_tokens=step.response_length_mean_tokens,
            length_max_tokens=step.response_length_max_tokens,
            tokens_total=step.tokens_total,
        )

    def moved(self, seconds: float) -> "GpuStep":
        """The clock that its time is told by was set by so much."""
        return replace(self, record=self.record._replace(at=self.at + seconds))

    @property
    def at(self) -> float:
        """When the step's line was read."""
        return self.record.at

    @property
    def step(self) -> int:
        return self.record.step.step

    @property
    def seconds(self) -> float | None:
        return self.record.step.step_seconds

    @property
    def clip_ratio(self) -> float | None:
        return self.record.step.response_clip_ratio

    @property
    def peak_bytes(self) -> float | None:
        told = self.figures[_PEAK]  # without a call more: it is asked for a hundred times a step
        return None if told != told else told  # noqa: PLR0124

    @property
    def floor_bytes(self) -> float | None:
        return self._figure(_FLOOR)

    @property
    def reserved_peak_bytes(self) -> float | None:
        return self._figure(_RESERVED_PEAK)

    @property
    def allocated_peak_bytes(self) -> float | None:
        return self._figure(_ALLOCATED_PEAK)

    @property
    def allocated_floor_bytes(self) -> float | None:
        return self._figure(_ALLOCATED_FLOOR)

    @property
    def slack_bytes(self) -> float | None:
        return self._figure(_SLACK)

    @property
    def lifetime_peak_bytes(self) -> float | None:
        return self._figure(_LIFETIME_PEAK)

    @property
    def residue_bytes(self) -> float | None:
        return self._figure(_RESIDUE)

    @property
    def asleep_bytes(self) -> float | None:
        return self._figure(_ASLEEP)

    def peak_of(self, phase: str) -> float | None:
        return self.phases.peak_of(phase)

    def floor_of(self, phase: str) -> float | None:
        return self.phases.floor_of(phase)

    def held_by(self, kind: str) -> float | None:
        """Bytes at the moments at which this kind is compared."""
        return self._figure(len(Figures._fields) + KINDS.index(kind))

    def _figure(self, place: int) -> float | None:
        told = self.figures[place]
        return None if told != told else told  # noqa: PLR0124 - quicker than isnan


class Block(NamedTuple):
    """A span of time without regard to steps, for programs that tell of none."""

    at: float  # its start
    peak_bytes: float
    floor_bytes: float


def usual_of(steps: Iterable[GpuStep]) -> list[GpuStep]:
    """The steps that say what is usual, of the last segment among them, oldest first."""
    known = list(steps)
    return [one for one in known if one.usual and one.segment == known[-1].segment]
