"""A server that waits for its PostgreSQL: it is alive, says what it waits for, and takes nobody in.

Of several servers one is started again while PostgreSQL is down, as after a failure of power. A supervisor that starts
it again and again would have it back late, and its log full.
"""

import asyncio
import logging
import socket

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from oomwatch.rulefile import read_rules
from oomwatch.settings import Settings, check, database_address, rules_path
from oomwatch.store.database import why_unreachable
from oomwatch.web import systemd
from oomwatch.web.answers import answer, refusal
from oomwatch.web.program import Program

LOOK_SECONDS = 1.0

logger = logging.getLogger(__name__)


async def until_reachable(settings: Settings, listener: socket.socket) -> bool:
    """True once PostgreSQL answers; False where a signal asks us to end before.

    Raises SettingError, RuleFileError or StoreError for what waiting does not mend.
    """
    check(settings)
    read_rules(rules_path(settings))
    database = database_address(settings)
    problem = await asyncio.to_thread(why_unreachable, database)
    if problem is None:
        return True
    logger.warning("%s; this server waits for it", problem)
    waiting = Waiting(problem)
    program = Program(waiting.app(), settings)
    serving = asyncio.create_task(program.serve([listener.dup()]), name="waiting")
    while waiting.problem is not None and not program.should_exit:
        await asyncio.wait([serving], timeout=LOOK_SECONDS)
        systemd.tell(systemd.STARTING)
        waiting.problem = await asyncio.to_thread(why_unreachable, database)
    is_reachable, program.should_exit = waiting.problem is None, True
    await serving
    return is_reachable


class Waiting:
    """What a server answers meanwhile."""

    def __init__(self, problem: str) -> None:
        self.problem: str | None = problem

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                WebSocketRoute("/{path:path}", self._websocket),
                Route("/{path:path}", self._refuse, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
            ]
        )

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, _: Request) -> Response:
        return answer({"ready": False, "problems": [self._sentence()]}, 503)

    async def _refuse(self, _: Request) -> Response:
        return refusal(503, self._sentence())

    async def _websocket(self, websocket: WebSocket) -> None:
        await websocket.send_denial_response(refusal(503, self._sentence()))

    def _sentence(self) -> str:
        return f"{self.problem or 'the database is there'}; this server waits for it"
