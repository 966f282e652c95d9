"""/api/v1/me: who the server takes you for."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch.access.proxied import OUTSIDE
from oomwatch.web.answers import answer
from oomwatch.web.describe import refusals, returns
from oomwatch.web.parts import parts_of
from oomwatch.web.rows import Me

router = APIRouter(prefix="/api/v1")


@router.get("/me", responses=returns(Me) | refusals(401))
async def me(request: Request) -> Response:
    """Your name, what you may do, and whether you can sign out."""
    token, asks_for = request.state.token, parts_of(request).keyring.asks_for
    may_act = not asks_for("operator") or (token is not None and token.role == "operator")
    if token is None:
        return answer(Me(name=None, may_act=may_act, can_leave=False, ends_at=None))
    can_leave = "cookie" in request.headers and not token.id.startswith(OUTSIDE)
    return answer(Me(name=token.name, may_act=may_act, can_leave=can_leave, ends_at=token.expires_at))
