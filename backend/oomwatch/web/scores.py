"""/api/v1/scorecard: how good the warnings of each rule were."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from oomwatch.scorecard import Scorecard, foretold
from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of

TIME_MAX = 1e12  # as in wire.UnixSeconds
Seconds = Annotated[float, Query(ge=0, le=TIME_MAX, allow_inf_nan=False)]
router = APIRouter(prefix="/api/v1")


@router.get("/scorecard", responses=returns(Scorecard, 400, 503))
async def scorecard(
    request: Request,
    *,
    start: Annotated[Seconds, Query(alias="from", description="Unix seconds; without it, all that is kept")] = 0.0,
    end: Annotated[Seconds | None, Query(alias="to", description="Unix seconds; without it, now")] = None,
    run: str | None = None,
) -> Response:
    """Recall, leads and false warnings of every rule that predicts something."""
    parts = parts_of(request)
    until = parts.service.clock() if end is None else end
    if start > until:
        return refusal(400, "from: must not be later than to")
    predicts = foretold(parts.service.engine.rules)
    return answer(await parts.read(parts.store.scorecard, start, until, run, predicts))
