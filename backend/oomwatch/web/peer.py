"""The other end of a connection itself, kept before a proxy's word about who is behind it takes its place."""

import logging
import time
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from oomwatch.access.addresses import Network, is_in, normal

SAID_AGAIN_SECONDS = 3600.0
_FORWARDED = b"x-forwarded-for"

logger = logging.getLogger(__name__)


class Peer:
    """An ASGI middleware: `scope["state"]["peer"]` is the address that connected, in its one form.

    Whoever speaks for others without being one of `proxies` is told of: all behind it count as one. `clock` never
    jumps.
    """

    def __init__(
        self, app: ASGIApp, proxies: Sequence[Network], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._proxies = proxies
        self._clock = clock
        self._said_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            client = scope.get("client")
            peer = normal(client[0]) if client else ""
            scope.setdefault("state", {})["peer"] = peer
            if client:
                scope["client"] = (peer, client[1])
            if any(name == _FORWARDED for name, _ in scope["headers"]) and not is_in(peer, self._proxies):
                self._tell(peer)
        await self._app(scope, receive, send)

    def _tell(self, peer: str) -> None:
        """Once an hour: whoever invents the header must not fill the log."""
        now = self._clock()
        if now - self._said_at >= SAID_AGAIN_SECONDS:
            self._said_at = now
            logger.warning(
                "%s says for whom it asks (X-Forwarded-For), and is not believed, so all whom it asks for count as "
                "one; if it is your proxy or load balancer: --trusted-proxies %s",
                peer, peer,
            )  # fmt: skip
