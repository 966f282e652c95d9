"""/healthz, /readyz and /metrics: for probes and Prometheus."""

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from oomwatch.metrics.page import encode
from oomwatch.web.answers import answer
from oomwatch.web.parts import Parts, parts_of
from oomwatch.web.wellbeing import degraded, silencing, unready

LOOK_SECONDS = 2.0


async def healthz(_: Request) -> Response:
    """It answers, so it is alive."""
    return PlainTextResponse("ok\n")


async def readyz(request: Request) -> Response:
    """Whether it does its work: 200, or 503. `problems` are also those that are no reason to send agents away."""
    parts = parts_of(request)
    lost = await _lost(parts)
    reasons = [*([lost] if lost is not None else []), *unready(parts)]
    problems = list(dict.fromkeys([*reasons, *silencing(parts), *degraded(parts)]))
    return answer({"ready": not reasons, "problems": problems}, 503 if reasons else 200)


async def _lost(parts: Parts) -> str | None:
    """What is wrong with the database's file. A thread looks: a disk that hangs must not take everything along."""
    try:
        return await asyncio.wait_for(parts.read(parts.store.lost), LOOK_SECONDS)
    except asyncio.TimeoutError:
        return f"the database's file could not be looked at within {LOOK_SECONDS:g} s; does its disk hang?"


async def metrics(request: Request) -> Response:
    """/metrics: read here, so that it is of one moment, and written by a thread, so that no alert waits for it."""
    parts, headers = parts_of(request), request.headers
    made = parts.metrics.read()
    asked = headers.get("accept", ""), headers.get("accept-encoding", "")
    page = await parts.read(lambda: encode(made(), *asked))
    return Response(page.content, headers=page.headers)
