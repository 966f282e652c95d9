"""/api/v1/alerts/timeline: the alerts of a stretch of time, lean."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from oomwatch.web.answers import answer, refusal
from oomwatch.web.choosing import Wanted, newest
from oomwatch.web.describe import Language, returns
from oomwatch.web.parts import parts_of
from oomwatch.web.spans import AlertSpans, span_of

SPANS_MAX = 1000
TIME_MAX = 1e12  # as in wire.UnixSeconds

Seconds = Annotated[float, Query(ge=0, le=TIME_MAX, allow_inf_nan=False)]
router = APIRouter(prefix="/api/v1/alerts")


@router.get("/timeline", responses=returns(AlertSpans, 400, 503))
async def timeline(
    request: Request,
    *,
    start: Annotated[Seconds, Query(alias="from", description="Unix seconds")],
    end: Annotated[Seconds | None, Query(alias="to", description="Unix seconds; without it, now")] = None,
    node: str | None = None,
    run: str | None = None,
    alert: Annotated[str | None, Query(description="name of the rule")] = None,
    limit: Annotated[int, Query(ge=1, le=SPANS_MAX)] = SPANS_MAX,
    lang: Language = "en",
) -> Response:
    """The alerts that were open at some moment from one time to another, those that wait to fire too."""
    parts = parts_of(request)
    until = parts.service.clock() if end is None else end
    if start > until:
        return refusal(400, "from: must not be later than to")
    wanted = Wanted({"node": node, "run": run, "alert": alert}, start, until)
    found = await newest(parts, wanted, ("pending", "firing", "resolved"), limit + 1)
    told = tuple([span_of(one, lang) for one in found[:limit]])
    return answer(AlertSpans(start_at=start, end_at=until, alerts=told, complete=len(found) <= limit))
