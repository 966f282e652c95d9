"""/api/v1/runs/NAME/batches: how verl cuts the steps of a run, number by number, and what it says against that."""

from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch import wire
from oomwatch.core.runrecord import RunRecord
from oomwatch.doctor.problems import outlived, problem_in_words
from oomwatch.doctor.rows import working_of
from oomwatch.plan.batches import Batches
from oomwatch.plan.problems import problems_of
from oomwatch.plan.reader import reader_of
from oomwatch.plan.settings import Config
from oomwatch.web.answers import answer, refusal
from oomwatch.web.batchrows import BatchesOfRun
from oomwatch.web.describe import Language, returns
from oomwatch.web.parts import parts_of
from oomwatch.web.paths import NAME

router = APIRouter(prefix="/api/v1")


class Told(NamedTuple):
    """What the engine knows of a run's batches, as of one moment: safe to be read in another thread."""

    run: str
    config: Config
    version: str | None  # of verl
    batches: Batches
    has_run: bool  # it has finished a step


@router.get(f"/runs/{NAME}/batches", responses=returns(BatchesOfRun, 404))
async def batches(request: Request, name: str, lang: Language = "en") -> Response:
    """The arithmetic of a run's batches with its numbers, what is assumed or missing, and what verl says against it."""
    parts = parts_of(request)
    record = parts.service.engine.fleet.runs.get(name)
    if record is None:
        return refusal(404, f'there is no run "{name}"')
    return answer(await parts.read(batches_of_run, told_of(record), lang))


def told_of(run: RunRecord) -> Told:
    return Told(run.name, run.config, run.framework_version, run.batches, len(run.steps) > 0)


def batches_of_run(told: Told, language: wire.Language) -> BatchesOfRun:
    """A trainer prints what it runs with: what is not there is verl's default, and told as such."""
    if not told.config:
        return BatchesOfRun(run=told.run, why="config")
    found = (problem_in_words(one, language) for one in problems_of(told.config, told.version))
    return BatchesOfRun(
        run=told.run,
        release=reader_of(told.config, told.version).release,
        release_told=told.version is not None,
        working=tuple(working_of(told.batches, told.batches, language)),
        problems=tuple(outlived(one, language) if told.has_run and one.severity == "error" else one for one in found),
    )
