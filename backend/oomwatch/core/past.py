"""What the memory of a run was when it last went well: the next start under the same name is held against it.

Kept of a run is one small table of its last usual steps: the peak of every phase and the floor of the step, each of the
highest GPU. While it runs the table is made anew every few steps; when it starts again (a resume, or tomorrow's run of
the same experiment) the last table becomes the measure, unless the run had ended out of memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.peaks import GpuStep

LEVEL_STEPS = 10  # usual ones: fewer say nothing of a run, and so often its table is made anew
RUNS_KEPT = 1000  # some KiB each


class PhaseLevel(NamedTuple):
    """Median over steps of the highest GPU's peak in one phase."""

    phase: str
    peak_bytes: float


class StepLevel(NamedTuple):
    """One step on all GPUs: of each phase the highest peak, and the highest of what is left at their lowest."""

    peaks: Mapping[str, float]
    floor_bytes: float | None


class Levels(Struct, frozen=True, kw_only=True):
    """A run's memory over LEVEL_STEPS usual steps, and the settings that it had."""

    at: float
    step: int  # the last of them
    phases: tuple[PhaseLevel, ...]
    floor_bytes: float | None = (
        None  # median over steps of the highest GPU's lowest: what is held when all is offloaded
    )
    length_mean_tokens: float | None = None
    config: dict[str, wire.ConfigValue] = {}


class Past(Struct, frozen=True, kw_only=True):
    """Of one run: how it is now, and how it was when it last ended well."""

    run: str
    now: Levels | None = None
    good: Levels | None = None


def highest(of_gpus: Iterable[GpuStep]) -> StepLevel:
    """Of one step, as it was on each of several GPUs."""
    peaks: dict[str, float] = {}
    floor: float | None = None
    for step in of_gpus:
        for phase, peak_bytes in step.phases.peaks_by_name():
            peaks[phase] = max(peak_bytes, peaks.get(phase, 0.0))
        if step.floor_bytes is not None:
            floor = max(step.floor_bytes, floor or 0.0)
    return StepLevel(peaks, floor)


def levels_of(
    gpus: Sequence[Sequence[GpuStep]], config: Mapping[str, wire.ConfigValue], *, steps: int = LEVEL_STEPS
) -> Levels | None:
    """Of the last usual steps of a run on its GPUs, oldest first. None while there are fewer.

    Of a phase that only some steps have (a checkpoint), nothing is said.
    """
    last = max((of_gpu[-1] for of_gpu in gpus if of_gpu), key=lambda step: step.at, default=None)
    if last is None:
        return None
    moments: dict[float, list[GpuStep]] = {}
    for of_gpu in gpus:
        for step in of_gpu:
            if step.usual and step.segment == last.segment:
                moments.setdefault(step.at, []).append(step)
    chosen = [moments[at] for at in sorted(moments)[-steps:]]
    if len(chosen) < steps:
        return None
    levels = [highest(of_step) for of_step in chosen]
    phases = [phase for phase in levels[-1].peaks if all(phase in level.peaks for level in levels)]
    floors = [level.floor_bytes for level in levels if level.floor_bytes is not None]
    lengths = [step.length_mean_tokens for (step, *_) in chosen if step.length_mean_tokens is not None]
    return Levels(
        at=last.at,
        step=last.step,
        phases=tuple(PhaseLevel(phase, median(level.peaks[phase] for level in levels)) for phase in phases),
        floor_bytes=median(floors) if floors else None,
        length_mean_tokens=median(lengths) if lengths else None,
        config=dict(config),
    )


class Pasts:
    """The past of every run that is remembered, the one that was told of last at the end."""

    def __init__(self) -> None:
        self._known: dict[str, Past] = {}
        self._changed: dict[str, None] = {}
        self._begun: dict[str, int] = {}  # run -> the segment that its `now` is of, or has begun

    def of(self, run: str) -> Past | None:
        return self._known.get(run)

    def remember(self, past: Past) -> None:
        """What was kept of a run before the server started."""
        self._keep(past)

    def changed(self) -> list[Past]:
        """Those that have changed since this was last asked: to be stored."""
        changed, self._changed = list(self._changed), {}
        return [past for run in changed if (past := self._known.get(run)) is not None]

    def keep_for_later(self, pasts: Iterable[Past]) -> None:
        """These could not be stored: they count as changed again."""
        self._changed |= dict.fromkeys(past.run for past in pasts)

    def begins(self, run: str, segment: int, step: int) -> bool:
        """Whether this step is the first of a new start of the run, as far as it is known."""
        before = self._begun.get(run)
        self._begun[run] = segment
        if before is not None:
            return segment != before
        past = self._known.get(run)  # the server has started since, and may have missed the run's end
        return past is not None and past.now is not None and (segment > 0 or step <= past.now.step)

    def turn_over(self, run: str, *, ended_well: bool) -> None:
        """The run starts again: how it was until now is the past, which is good if it ended well."""
        past = self._known.get(run)
        if past is not None and past.now is not None:
            good = past.now if ended_well else past.good
            self._change(Past(run=run, good=good))

    def update(self, run: str, now: Levels) -> None:
        past = self._known.get(run)
        self._change(Past(run=run, now=now, good=past.good if past else None))

    def forget(self, run: str) -> None:
        """Nothing was heard of the run for long. What it was stays known; the next step of it is of another start."""
        self._begun.pop(run, None)

    def rename(self, old: str, new: str) -> None:
        """What went by one name until now goes by another, which may have a past of its own."""
        past, begun = self._known.pop(old, None), self._begun.pop(old, None)
        if past is not None and new not in self._known:
            self._change(Past(run=new, now=past.now, good=past.good))
        if begun is not None:
            self._begun.setdefault(new, begun)

    def _change(self, past: Past) -> None:
        self._keep(past)
        self._changed[past.run] = None

    def _keep(self, past: Past) -> None:
        self._known.pop(past.run, None)
        self._known[past.run] = past
        if len(self._known) > RUNS_KEPT:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._begun.pop(oldest, None)
