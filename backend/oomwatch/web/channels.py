"""/api/v1/channels: how notification channels fare, and what to do once one that failed is mended."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch import wire
from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import refusals, returns
from oomwatch.web.parts import parts_of
from oomwatch.web.paths import NAME

router = APIRouter(prefix="/api/v1")


@router.get("/channels", responses=returns(list[wire.ChannelState]))
async def channels(request: Request) -> Response:
    """Every channel, in the order of alerts.yaml."""
    return answer(parts_of(request).herald.status())


@router.post(f"/channels/{NAME}/retry", status_code=204, responses=refusals(404, 409, 503))
async def retry(request: Request, name: str) -> Response:
    """Tell a channel again what it has refused, as far as it is still of interest, and what waits for it at once."""
    parts = parts_of(request)
    if any(one.name == name for one in parts.herald.fed()):
        return refusal(409, f'the channel "{name}" is sent everything again by itself, every minute')
    if parts.cluster is not None and not parts.cluster.leads:
        if not any(one.name == name for one in parts.herald.status()):
            return refusal(404, f'there is no channel "{name}"')
        parts.cluster.replica.retry(name)
        return Response(status_code=204)
    if not await parts.herald.retry(name):
        return refusal(404, f'there is no channel "{name}"')
    return Response(status_code=204)
