"""uvicorn, as this server runs it."""

import functools
import logging
import os
import socket
import ssl
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from oomwatch.listener import BACKLOG
from oomwatch.options import SettingError
from oomwatch.oserror import in_words
from oomwatch.settings import Settings, believed_proxies
from oomwatch.web.connections import Connections, Http, WebSocket, connections_at_most, files_at_most

FRAME_BYTES_MAX = 8 * 2**20
PING_SECONDS = 20.0  # docs/reference/wire-protocol.md, "Liveness"
STOP_SECONDS = 5
LAST_SECONDS = 30.0  # all that is to be done at the end, of a database that is locked too; what is not over then hangs
ACCEPTED_AT_ONCE = 16  # between two looks at who is there: it takes files before it is known whether there is room

logger = logging.getLogger(__name__)


class Program(uvicorn.Server):
    """Ends when a signal asks for it, and leaves the process to whoever ran it."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - an ASGI application
        settings: Settings,
        connections: Connections | None = None,
    ) -> None:
        self.connections = connections if connections is not None else _connections(settings)
        super().__init__(
            uvicorn.Config(
                app,
                **tls(settings),
                http=functools.partial(Http, self.connections),  # type: ignore[arg-type]  # called like a class
                ws=functools.partial(WebSocket, self.connections),  # type: ignore[arg-type]
                ws_max_size=FRAME_BYTES_MAX,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PING_SECONDS,
                ws_per_message_deflate=False,  # costs more CPU than everything else together
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,  # app.py sees to it: who may speak for others is for the settings to say
                timeout_graceful_shutdown=STOP_SECONDS,
                backlog=ACCEPTED_AT_ONCE,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal asks us to end; the second one, at once.

        uvicorn's own would raise the signal again once it is done, and so end the process before the parts are stopped.
        """
        self.force_exit = self.should_exit
        if not self.should_exit:
            end_at_last(LAST_SECONDS)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # so many may wait; asyncio took the number for both


def _connections(settings: Settings) -> Connections:
    return Connections(connections_at_most(files_at_most()), proxies=believed_proxies(settings))


def end_at_last(seconds: float) -> None:
    """End the process after so long, whatever hangs by then. What was acknowledged is stored; the rest comes again."""

    def end() -> None:
        logger.critical("the server was to end, and something hung for %g s: it ends at once; nothing is lost", seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def tls(settings: Settings) -> dict[str, Any]:
    """uvicorn's settings for TLS. Raises SettingError where the files cannot be used."""
    if settings.tls_cert is None:
        return {}
    _try_certificate(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    files = {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key or settings.tls_cert)}
    if settings.tls_client_ca is None:
        return files
    return {**files, "ssl_ca_certs": str(settings.tls_client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}


def _try_certificate(certificate: Path, key: Path | None, client_ca: Path | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"tls_cert: {certificate} and its key cannot be used: {in_words(error)}; both are PEM files"
        ) from error
    try:
        if client_ca is not None:
            context.load_verify_locations(client_ca)
    except (OSError, ValueError) as error:
        raise SettingError(f"tls_client_ca: {client_ca} cannot be used: {in_words(error)}; it is a PEM file") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to type its password")
