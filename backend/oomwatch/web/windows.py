"""/api/v1/muting: the windows of alerts.yaml in which nobody is sent certain alerts."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch.web.answers import answer
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of
from oomwatch.web.windowrows import MutingWindows, rows_of

router = APIRouter(prefix="/api/v1/muting")


@router.get("", responses=returns(MutingWindows))
async def muting(request: Request) -> Response:
    """Maintenance, quiet hours and which alerts cover others, with what each hides now. Not silences."""
    service = parts_of(request).service
    open_alerts = [one for one in service.open_alerts() if one.state == "firing"]
    return answer(rows_of(service.attention.windows(), open_alerts, service.clock()))
