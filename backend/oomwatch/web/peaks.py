"""/api/v1/runs/NAME/peaks: device memory of each phase, step by step, on the GPU of the run that had least left."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.peaks import GpuStep
from oomwatch.core.runrecord import CYCLE_MARKS_KEPT, CycleMark, RunRecord
from oomwatch.core.steps import StepRecord
from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of
from oomwatch.web.paths import NAME
from oomwatch.web.rows import Peaks, PeaksOfRun, PeakSource

router = APIRouter(prefix="/api/v1")
_ORDER = {phase: place for place, phase in enumerate(wire.PHASES)}
_LATER = len(_ORDER)  # a phase of a later agent


class Known(NamedTuple):
    """What the engine remembers of a run, as of one moment: safe to be read in another thread."""

    run: str
    records: Sequence[StepRecord]
    gpus: Sequence[tuple[PeakSource, Sequence[GpuStep]]]
    marks: Sequence[CycleMark] | None  # None: no marker of the switch to rollout was seen


class _Top(NamedTuple):
    """A peak of one phase of one step, and the GPU that had least left then."""

    filled: float  # of what the GPU can use
    peak_bytes: float
    gpu: int


@router.get(f"/runs/{NAME}/peaks", responses=returns(PeaksOfRun, 404))
async def peaks(request: Request, name: str) -> Response:
    """The highest device memory of each phase of the last steps, over all GPUs of a run: from the server's memory."""
    parts = parts_of(request)
    fleet = parts.service.engine.fleet
    record = fleet.runs.get(name)
    if record is None:
        return refusal(404, f'there is no run "{name}"')
    return answer(await parts.read(peaks_of, known_of(fleet, record)))


def known_of(fleet: Fleet, run: RunRecord) -> Known:
    marker = run.cycle_marker()
    gpus = [
        (PeakSource(node=gpu.subject.name, gpu=gpu.subject.gpu, usable_bytes=gpu.usable_bytes), tuple(gpu.steps))
        for node in run.nodes
        if (record := fleet.nodes.get(node)) is not None
        for gpu in record.gpus.values()
        if gpu.steps_of == run.name and gpu.usable_bytes > 0
    ]
    marks = tuple(run.cycle_marks[marker]) if marker else None
    return Known(run.name, tuple(run.steps), gpus, marks)


def peaks_of(known: Known) -> PeaksOfRun:
    records = last_attempt(known.records)
    at = [record.at for record in records]
    tops, places = _tops(known), [(record.segment, record.step.step) for record in records]
    told = [place for place in places if place in tops]
    phases = sorted({phase for place in told for phase in tops[place]}, key=lambda one: (_ORDER.get(one, _LATER), one))
    columns = {phase: [tops.get(place, {}).get(phase) for place in places] for phase in phases}
    named = sorted({top.gpu for column in columns.values() for top in column if top})
    return PeaksOfRun(
        run=known.run,
        step=tuple(step for _, step in places),
        at=tuple(at),
        known_from_step=told[0][1] if told else None,
        gpus=tuple(known.gpus[gpu][0] for gpu in named),
        phases={phase: _column(columns[phase], named) for phase in phases},
        reshard_cycles=tuple(cycles(known.marks, at)),
    )


def last_attempt(records: Sequence[StepRecord]) -> list[StepRecord]:
    """The training steps as they count: after a resume some are done again, and what they were before is void."""
    kept: list[StepRecord] = []
    for record in records:
        if record.step.validation_only:
            continue
        while kept and kept[-1].step.step >= record.step.step:
            kept.pop()
        kept.append(record)
    return kept


def _tops(known: Known) -> dict[tuple[int, int], dict[str, _Top]]:
    """By segment and step, and then by phase."""
    tops: dict[tuple[int, int], dict[str, _Top]] = {}
    for place, (source, steps) in enumerate(known.gpus):
        for step in steps:
            of_step = tops.setdefault((step.segment, step.step), {})
            for phase, peak_bytes in _peaks(step):
                top = _Top(peak_bytes / source.usable_bytes, peak_bytes, place)
                before = of_step.get(phase)
                if before is None or top.filled > before.filled:
                    of_step[phase] = top
    return {place: of_step for place, of_step in tops.items() if of_step}


def _peaks(step: GpuStep) -> Iterator[tuple[str, float]]:
    """Of each phase; of the whole step where none of them could be told apart."""
    if step.phases.names:
        yield from step.phases.peaks_by_name()
    elif step.peak_bytes is not None:
        yield "step", step.peak_bytes


def _column(column: Sequence[_Top | None], named: Sequence[int]) -> Peaks:
    return Peaks(
        peak_bytes=tuple(None if top is None else round(top.peak_bytes) for top in column),
        gpu=tuple(None if top is None else named.index(top.gpu) for top in column),
    )


def cycles(marks: Sequence[CycleMark] | None, at: Sequence[float]) -> Iterator[int | None]:
    """How often each step switched from training to rollout, as the process says that told of most.

    None: no marker is known, or the marks do not reach back so far.
    """
    counts: list[Counter[object]] = [Counter() for _ in at]
    for mark in marks or ():
        step = bisect_left(at, mark.at)
        if 0 < step < len(at):
            counts[step][mark.printer] += 1
    is_cut = marks is not None and len(marks) == CYCLE_MARKS_KEPT
    for step, count in enumerate(counts):
        known = bool(marks) and step > 0 and not (is_cut and marks and at[step - 1] < marks[0].at)
        yield max(count.values(), default=0) if known else None
