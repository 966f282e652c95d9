"""The other end of a connection itself, kept before a proxy's word about who is behind it takes its place."""

from starlette.types import ASGIApp, Receive, Scope, Send

# As uvicorn would by itself: a proxy on this machine says who asked it, and how.
BELIEVED = ("127.0.0.1", "::1")


class Peer:
    """An ASGI middleware: `scope["state"]["peer"]` is the address that connected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            client = scope.get("client")
            scope.setdefault("state", {})["peer"] = client[0] if client else ""
        await self._app(scope, receive, send)
