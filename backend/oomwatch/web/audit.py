"""/api/v1/audit: what people had the server do."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from oomwatch.access.audit import Deed
from oomwatch.web.access import write_audit
from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of

router = APIRouter(prefix="/api/v1")
DEEDS_MAX = 1000


@router.get("/audit", responses=returns(list[Deed], 400, 403, 503))
async def audit(
    request: Request,
    since: Annotated[float, Query(ge=0, le=1e12, description="Unix seconds")] = 0.0,
    limit: Annotated[int, Query(ge=1, le=DEEDS_MAX)] = 100,
) -> Response:
    """What was done, the latest first. Where there are tokens for operators, it is for them."""
    parts, token = parts_of(request), request.state.token
    if parts.keyring.asks_for("operator") and (token is None or token.role != "operator"):
        return refusal(403, "the audit log is for operators; send an operator's token")
    await write_audit(parts)
    return answer(await parts.read(parts.store.deeds, since, limit))
