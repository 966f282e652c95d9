"""How many requests are worked on at once: each holds memory, and two threads answer the questions to the database."""

from starlette.types import ASGIApp, Receive, Scope, Send

from oomwatch.web.answers import refusal

REQUESTS_MAX = 256
ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})  # who watches the server is to see it most when it is crowded


class Crowd:
    """An ASGI middleware: whoever comes when there are so many is to come again."""

    def __init__(self, app: ASGIApp, at_most: int = REQUESTS_MAX) -> None:
        self._app = app
        self._at_most = at_most
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._inside >= self._at_most:
            busy = refusal(503, f"{self._at_most} requests are being answered already; ask again in a second")
            busy.headers["Retry-After"] = "1"
            await busy(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1
