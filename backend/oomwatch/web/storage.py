"""/api/v1/storage: how large the database is, what of it is history, and how fast it grows."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch.web.answers import answer
from oomwatch.web.describe import returns
from oomwatch.web.parts import parts_of
from oomwatch.web.storagewatch import Storage

router = APIRouter(prefix="/api/v1")


@router.get("/storage", responses=returns(Storage))
async def storage(request: Request) -> Response:
    """How large the database is and how fast it grows, and how much history there is of each fineness."""
    return answer(parts_of(request).storage.latest)
