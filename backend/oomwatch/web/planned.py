"""/api/v1/runs/NAME/plan: what each phase of a run was expected to hold, beside what it held."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch.core.fleet import Fleet
from oomwatch.core.peaks import GpuStep, usual_of
from oomwatch.core.planned import (
    SWITCH,
    NoPlan,
    Plan,
    at_lengths,
    gpus_on,
    highest_peaks,
    learned,
    mean_tokens,
    plan_of,
    shape_of,
)
from oomwatch.core.runrecord import RunRecord
from oomwatch.plan.memory import Correction, Estimate, PhaseEstimate, corrected
from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of
from oomwatch.web.paths import NAME
from oomwatch.web.planrows import PlannedPhase, PlanOfRun, Stands

router = APIRouter(prefix="/api/v1")


class Known(NamedTuple):
    """What the engine knows of a run's plan, as of one moment: safe to be read in another thread."""

    run: RunRecord
    capacity_bytes: int
    plan: Plan | NoPlan
    taught: Correction | None
    of_gpus: Sequence[Sequence[GpuStep]]


@router.get(f"/runs/{NAME}/plan", responses=returns(PlanOfRun, 404))
async def plan(request: Request, name: str) -> Response:
    """The estimate of a run's memory by phase, beside its peaks, and what these say of the estimate."""
    parts = parts_of(request)
    fleet = parts.service.engine.fleet
    record = fleet.runs.get(name)
    if record is None:
        return refusal(404, f'there is no run "{name}"')
    return answer(await parts.read(plan_of_run, known_of(fleet, record)))


def known_of(fleet: Fleet, run: RunRecord) -> Known:
    """Of the smallest of the run's cards, where they differ."""
    capacity = min((gpu.usable_bytes for gpu in fleet.gpus_of_run(run)), default=0)
    of_gpus = [tuple(gpu.steps) for gpu in gpus_on(fleet, run, capacity)]
    return Known(run, capacity, plan_of(run, capacity), learned(fleet, run, capacity), of_gpus)


def plan_of_run(known: Known) -> PlanOfRun:
    run, made = known.run, known.plan
    shape = shape_of(run.model)
    if isinstance(made, NoPlan) or shape is None:
        return PlanOfRun(run=run.name, why=made.why if isinstance(made, NoPlan) else "model")
    steps = max((usual_of(of_gpu) for of_gpu in known.of_gpus), key=len, default=[])
    return PlanOfRun(
        run=run.name,
        capacity_bytes=known.capacity_bytes,
        model=str(run.model["name"]) if "name" in run.model else None,
        parameters=shape.parameters,
        verdict=made.expected.verdict,
        peak_phase=made.expected.peak.phase,
        length_tokens=mean_tokens(steps, run.config, run.batches),
        assumed=made.expected.assumed,
        phases=tuple(_phases(known, made, at_lengths(run, known.capacity_bytes, steps))),
    )


def _phases(known: Known, made: Plan, so_far: Estimate | None) -> Iterator[PlannedPhase]:
    measured = highest_peaks(known.of_gpus)
    following = corrected(made.told, known.taught) if known.taught else None
    for one in made.expected.phases:
        yield _phase(one, made, measured, so_far, following, known.taught)


def _phase(
    one: PhaseEstimate,
    made: Plan,
    measured: Mapping[str, float],
    so_far: Estimate | None,
    following: Estimate | None,
    taught: Correction | None,
) -> PlannedPhase:
    part = max(one.parts, key=lambda part: part.bytes)
    peak = measured.get(one.phase)
    at_length = so_far.phase(one.phase) if so_far and one.phase != SWITCH else None
    after = following.phase(one.phase) if following else None
    return PlannedPhase(
        phase=one.phase,
        moment=one.moment,
        low_bytes=one.low_bytes,
        expected_bytes=one.expected_bytes,
        high_bytes=max(one.high_bytes, made.high_bytes(one.phase) or 0),
        verdict=one.verdict,
        trouble=one.trouble,
        part=part.name,
        part_bytes=part.bytes,
        measured_bytes=None if peak is None else round(peak),
        stands=None if peak is None else _stands(peak, one.low_bytes, made.high_bytes(one.phase)),
        at_lengths_bytes=at_length.expected_bytes if at_length else None,
        error_ratio=at_length.expected_bytes / peak - 1 if at_length and peak else None,
        factor=taught.factors.get(one.phase) if taught else None,
        next_bytes=after.expected_bytes if after else None,
    )


def _stands(peak: float, low: int, high: int | None) -> Stands:
    if high is not None and peak > high:
        return "above"
    return "below" if peak < low else "within"
