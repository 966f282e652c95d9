"""/api/v1/history/gpus: one figure of many GPUs at once, as a page of a run or of a node asks for it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of
from oomwatch.web.rows import History, history_of

TIME_MAX = 1e12  # as in wire.UnixSeconds
# 1,024 GPUs of 500 points take seconds and some 20 MB.
GPUS_MAX = 1024

Seconds = Annotated[float, Query(ge=0, le=TIME_MAX, allow_inf_nan=False)]
router = APIRouter(prefix="/api/v1")


@router.get("/history/gpus", responses=returns(list[History], 400, 503))
async def gpu_history(
    request: Request,
    *,
    series: Annotated[str, Query(description="what to draw, for example gpu_used_ratio; one that is of a GPU")],
    start: Annotated[Seconds, Query(alias="from", description="Unix seconds")],
    end: Annotated[Seconds, Query(alias="to", description="Unix seconds")],
    step: Annotated[Seconds, Query(gt=0, description="least width of a point, in seconds")] = 1.0,
    node: str | None = None,
    run: str | None = None,
) -> Response:
    """A figure over time of every GPU of a node, or of the nodes of a run: a list, each as in /history."""
    if node is None and run is None:
        return refusal(400, "give node or run: whose GPUs?")
    parts = parts_of(request)
    places = await parts.read(parts.store.gpus, node=node, run=run)
    if len(places) > GPUS_MAX:
        return refusal(400, f"these are {len(places)} GPUs; at most {GPUS_MAX} can be asked for at once: give node too")
    try:
        found = await parts.read(parts.store.series_of_gpus, series, places, start, end, step)
    except ValueError as error:
        return refusal(400, str(error))
    return answer([history_of(one) for one in found])
