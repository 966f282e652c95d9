"""/healthz, /readyz and /metrics: for probes and Prometheus."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from oomwatch.metrics.page import encode
from oomwatch.service.service import STUCK_SECONDS
from oomwatch.web.answers import answer
from oomwatch.web.parts import Parts, parts_of


async def healthz(_: Request) -> Response:
    """It answers, so it is alive."""
    return PlainTextResponse("ok\n")


async def readyz(request: Request) -> Response:
    """Whether it does its work: 200, or 503 with everything that is in the way."""
    problems = problems_of(parts_of(request))
    return answer({"ready": not problems, "problems": problems}, 503 if problems else 200)


def problems_of(parts: Parts) -> list[str]:
    """In sentences; empty where all is well."""
    problems = []
    storage = parts.store.lost() or parts.journal.problem
    if storage is not None:
        problems.append(storage)
    if not parts.journal.is_running:
        problems.append("nothing is stored and nobody is told any more; see the log, and restart the server")
    problems += [
        f"the task {name} has ended by a defect; see the log, and restart the server" for name in parts.dead_tasks
    ]
    late_seconds = parts.service.seconds_since_beat()
    if late_seconds > STUCK_SECONDS:
        problems.append(f"the rules were last judged {late_seconds:.0f} s ago")
    if parts.service.reception.is_closed:
        problems.append("the server is going down")
    return problems


async def metrics(request: Request) -> Response:
    """/metrics: read here, so that it is of one moment, and written by a thread, so that no alert waits for it."""
    parts, headers = parts_of(request), request.headers
    told = parts.metrics.collect()
    page = await parts.read(encode, told, headers.get("accept", ""), headers.get("accept-encoding", ""))
    return Response(page.content, headers=page.headers)
