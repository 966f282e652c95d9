"""The other end of a connection itself, kept before a proxy's word about who is behind it takes its place."""

from starlette.types import ASGIApp, Receive, Scope, Send

from oomwatch.access.addresses import normal

# As uvicorn would by itself: a proxy on this machine says who asked it, and how.
BELIEVED = ("127.0.0.1", "::1")


class Peer:
    """An ASGI middleware: `scope["state"]["peer"]` is the address that connected, in its one form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            client = scope.get("client")
            peer = normal(client[0]) if client else ""
            scope.setdefault("state", {})["peer"] = peer
            if client:
                scope["client"] = (peer, client[1])
        await self._app(scope, receive, send)
