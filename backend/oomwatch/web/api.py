"""/api/v1: everything that the page shows, for programs, and one thing to do: forget a node.

Described in docs/reference/api.md and by its OpenAPI.
"""

from http import HTTPStatus
from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from oomwatch import wire
from oomwatch.service import runviews
from oomwatch.service.sessions import StillConnectedError
from oomwatch.store.store import StoreError
from oomwatch.web import (
    audit,
    batches,
    care,
    channels,
    doctor,
    gpuhistory,
    incidents,
    me,
    peaks,
    planned,
    rules,
    scores,
    silences,
    storage,
    timeline,
    windows,
)
from oomwatch.web.answers import RefusedError, answer, refusal, refused
from oomwatch.web.choosing import Wanted, newest
from oomwatch.web.describe import Language, described, refusals, returns
from oomwatch.web.parts import parts_of
from oomwatch.web.paths import NAME
from oomwatch.web.rows import Agent, AlertRow, AlertStory, GpuRow, History, agents, alert_row, history_of

ALERTS_MAX = 1000
SERIES_MAX = 24  # of one answer: all that a chart of the page draws, twice
STEPS_MAX = 10_000
TIME_MAX = 1e12  # as in wire.UnixSeconds

Seconds = Annotated[float, Query(ge=0, le=TIME_MAX, allow_inf_nan=False)]
State = Literal["pending", "firing", "resolved"]
router = APIRouter(prefix="/api/v1")


@router.get("/state", responses=returns(wire.Snapshot))
async def state(request: Request) -> Response:
    """Everything, as of now: what a browser gets first, and each node's latest sample."""
    return answer(parts_of(request).service.snapshot())


@router.get("/alerts", responses=returns(list[AlertRow], 400, 503))
async def alerts(
    request: Request,
    *,
    state: Annotated[State | None, Query(description="without it, what fires and what is over")] = None,
    node: str | None = None,
    run: str | None = None,
    alert: Annotated[str | None, Query(description="name of the rule")] = None,
    since: Annotated[Seconds | None, Query(description="leave out what was over by then; Unix seconds")] = None,
    until: Annotated[Seconds | None, Query(description="leave out what began after then; Unix seconds")] = None,
    limit: Annotated[int, Query(ge=1, le=ALERTS_MAX)] = 100,
    lang: Language = "en",
) -> Response:
    """Alerts, the one that started last first. Open ones have their numbers as of now."""
    parts = parts_of(request)
    wanted = Wanted({"node": node, "run": run, "alert": alert}, since, until)
    states = ("firing", "resolved") if state is None else (state,)  # what is pending is no alert yet
    return answer([alert_row(one, lang) for one in await newest(parts, wanted, states, limit)])


@router.get("/alerts/{alert_id}", responses=returns(AlertStory, 404, 503))
async def alert_story(request: Request, alert_id: str, lang: Language = "en") -> Response:
    """One alert, with everything that became of it."""
    parts = parts_of(request)
    current = next((one for one in parts.service.open_alerts() if one.id == alert_id), None)
    found = current or await parts.read(parts.store.alert, alert_id)
    if found is None:
        return refusal(404, f'there is no alert "{alert_id}"')
    story = await parts.read(parts.store.transitions_of, alert_id)
    told = await parts.read(parts.store.deliveries_of, alert_id)
    return answer(AlertStory(alert=alert_row(found, lang), transitions=tuple(story), deliveries=tuple(told)))


@router.get("/rules", responses=returns(wire.RulesChanged))
async def rules_in_force(request: Request) -> Response:
    """The rules in force, and what is wrong with their file where they are not the file's."""
    service = parts_of(request).service
    return answer(wire.RulesChanged(server=service.server_info(), rules=service.rules()))


@router.get("/nodes", responses=returns(list[wire.Node]))
async def nodes(request: Request) -> Response:
    """Every node with its facts and its latest reading."""
    service = parts_of(request).service
    return answer(list(service.picture.nodes(service.clock())))


@router.get(f"/nodes/{NAME}", responses=returns(wire.Node, 404))
async def node(request: Request, name: str) -> Response:
    """One node, with the last sample that listed its processes."""
    service = parts_of(request).service
    found = service.picture.node(name, service.clock())
    return refusal(404, f'there is no node "{name}"') if found is None else answer(found)


@router.get("/gpus", responses=returns(list[GpuRow]))
async def gpus(
    request: Request,
    *,
    uuid: Annotated[str | None, Query(description="only those with this in their UUID, be it capital or small")] = None,
    limit: Annotated[int | None, Query(ge=1, le=wire.COUNT_MAX, description="so many at most; without it, all")] = None,
) -> Response:
    """GPUs: the node, the UUID, and what else does not change of each."""
    part = (uuid or "").lower()
    found = ((node, facts) for node, facts in parts_of(request).service.picture.gpus() if part in facts.uuid.lower())
    return answer([GpuRow.of(node, facts) for node, facts in islice(found, limit)])


@router.delete(f"/nodes/{NAME}", status_code=204, responses=refusals(404, 409, 503))
async def forget_node(request: Request, name: str) -> Response:
    """Forget a node that is gone for good: its alerts end, and it is shown no more. Its history stays."""
    parts = parts_of(request)
    if not parts.service.knows(name):
        return refusal(404, f'there is no node "{name}"')
    try:
        parts.service.roster.check_gone(name)
        await parts.journal.flush()  # what is on its way to the database would bring the node back
        await parts.write(parts.store.retire_node, name, parts.service.clock())
        parts.service.retire(name)
        if parts.cluster is not None:
            parts.cluster.replica.nudge()
    except StillConnectedError as error:
        return refusal(409, str(error))
    return Response(status_code=204)


@router.get("/runs", responses=returns(list[wire.Run]))
async def runs(request: Request) -> Response:
    """Every run with its last steps and phases, its signals and its configuration."""
    return answer(list(parts_of(request).service.picture.runs()))


@router.get(f"/runs/{NAME}/steps", responses=returns(list[wire.StepPoint], 400, 503))
async def steps(request: Request, name: str, limit: Annotated[int, Query(ge=1, le=STEPS_MAX)] = 500) -> Response:
    """The last steps of a run, oldest first."""
    parts = parts_of(request)
    return answer(await parts.read(parts.store.steps, name, limit))


@router.get("/phases", responses=returns(list[wire.PhaseSpan], 400, 404))
async def phases(
    request: Request,
    *,
    run: str,
    start: Annotated[Seconds, Query(alias="from", description="Unix seconds")] = 0.0,
    end: Annotated[Seconds, Query(alias="to", description="Unix seconds; without it, up to now")] = TIME_MAX,
) -> Response:
    """The phases that a run went through, oldest first: the last 4000 or so are known."""
    record = parts_of(request).service.engine.fleet.runs.get(run)
    if record is None:
        return refusal(404, f'there is no run "{run}"')
    return answer(list(runviews.phases(record, start, end)))


@router.get("/history", responses=returns(History | list[History], 400, 503))
async def history(
    request: Request,
    *,
    series: Annotated[
        list[str],
        Query(description="what to draw, for example gpu_used_bytes; may be given again", max_length=SERIES_MAX),
    ],
    start: Annotated[Seconds, Query(alias="from", description="Unix seconds")],
    end: Annotated[Seconds, Query(alias="to", description="Unix seconds")],
    step: Annotated[Seconds, Query(gt=0, description="least width of a point, in seconds")] = 1.0,
    node: str | None = None,
    gpu: str | None = None,
    run: str | None = None,
) -> Response:
    """A figure over time, as columns: the least, the greatest and the mean of each point. null: nothing was read.

    Of several figures a list, in the order in which they were asked for.
    """
    parts = parts_of(request)
    labels = {name: value for name, value in (("node", node), ("gpu", gpu), ("run", run)) if value is not None}

    def read() -> list[History]:
        return [history_of(parts.store.series(name, labels, start, end, step)) for name in series]

    try:
        found = await parts.read(read)
    except ValueError as error:
        return refusal(400, str(error))
    return answer(found if len(found) > 1 else found[0])


@router.get("/agents", responses=returns(list[Agent]))
async def agent_list(request: Request) -> Response:
    """The agents that were heard since the server started: their clocks, counters and sources."""
    return answer(agents(parts_of(request).service))


# ---------------------------------------------------------------- installing


class HeadAsGet:
    """An ASGI middleware: HEAD works wherever GET does. The server leaves the body out of the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def install(app: FastAPI) -> None:
    """Add the routes, their description, and their errors in one form."""
    app.include_router(care.router)  # before /alerts/{alert_id}
    app.include_router(timeline.router)  # so is this
    app.include_router(router)
    app.include_router(silences.router)
    app.include_router(windows.router)
    app.include_router(scores.router)
    app.include_router(peaks.router)
    app.include_router(planned.router)
    app.include_router(batches.router)
    app.include_router(incidents.router)
    app.include_router(rules.router)
    app.include_router(channels.router)
    app.include_router(audit.router)
    app.include_router(me.router)
    app.include_router(doctor.router)
    app.include_router(storage.router)
    app.include_router(gpuhistory.router)
    app.add_middleware(HeadAsGet)
    app.add_exception_handler(RequestValidationError, _bad_query)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(StoreError, _store_error)
    app.add_exception_handler(RefusedError, refused)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it


async def _bad_query(_: Request, error: Exception) -> Response:
    known = error.errors() if isinstance(error, RequestValidationError) else []
    parts = [f"{'.'.join(str(place) for place in one['loc'][1:])}: {one['msg']}" for one in known]
    return refusal(400, "; ".join(parts))


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    is_lost = status == HTTPStatus.NOT_FOUND
    return refusal(status, f"there is nothing at {request.url.path}" if is_lost else HTTPStatus(status).phrase)


async def _store_error(_: Request, error: Exception) -> Response:
    return refusal(503, str(error))
