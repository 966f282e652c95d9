"""/api/v1/incidents: the reports of what ran out of memory."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from oomwatch import wire
from oomwatch.incident.page import page
from oomwatch.incident.report import Entry, Incident
from oomwatch.web.answers import answer, refusal
from oomwatch.web.describe import refusals, returns
from oomwatch.web.parts import parts_of

# The page is a file that also stands alone, so its script is within it. In a sandbox it is of no origin: whatever it
# might be made to do, it can ask this server for nothing.
PAGE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
Language = Annotated[wire.Language | None, Query(description="language; without it the one that it was written in")]
router = APIRouter(prefix="/api/v1")


@router.get("/incidents", responses=returns(list[Entry]))
async def incidents(request: Request) -> Response:
    """Every report, the newest first."""
    parts = parts_of(request)
    return answer(await parts.read(parts.incidents.entries))


@router.get("/incidents/{name}.html", responses=refusals(404), response_class=Response)
async def incident_page(request: Request, name: str, lang: Language = None) -> Response:
    """A report as one HTML file, which works without a network."""
    parts = parts_of(request)
    content = await parts.read(parts.incidents.page, name)
    if content is not None and lang is not None:
        content = await parts.read(_in_language, await parts.read(parts.incidents.read, name), lang)
    if content is None:
        return refusal(404, f'there is no incident "{name}"')
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": PAGE_POLICY})


def _in_language(report: bytes | None, language: wire.Language) -> bytes | None:
    return None if report is None else page(msgspec.json.decode(report, type=Incident), language).encode()


@router.get("/incidents/{name}", responses=returns(Incident, 404))
async def incident(request: Request, name: str) -> Response:
    """A report with everything in it."""
    parts = parts_of(request)
    content = await parts.read(parts.incidents.read, name)
    if content is None:
        return refusal(404, f'there is no incident "{name}"')
    return Response(content, media_type="application/json")
