"""One server process, from binding its address to the last goodbye."""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from oomwatch import wire
from oomwatch.options import SettingError
from oomwatch.settings import Address, Settings, address_of
from oomwatch.web import systemd
from oomwatch.web.app import create_app, running
from oomwatch.web.parts import Parts

FRAME_BYTES_MAX = 8 * 2**20
PING_SECONDS = 20.0  # docs/reference/wire-protocol.md, "Liveness"
GOODBYE_SECONDS = 1.0
STOP_SECONDS = 5
BACKLOG = 1024  # every agent of a fleet connects in the same second after a restart

logger = logging.getLogger(__name__)


async def serve(settings: Settings, *, started: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM. `started` is told the address in use, as a URL.

    Raises what `app.running` raises, and SettingError where the address cannot be bound.
    """
    address = address_of(settings)
    _warn_of_openness(settings, address)
    _tls(settings)  # before anything else is begun
    with contextlib.closing(bind(address)) as listener:
        async with running(settings) as parts:
            server = Server(parts)
            url = Address(address.host, listener.getsockname()[1]).url
            if settings.tls_cert is not None:
                url = "https" + url.removeprefix("http")
            logger.info("dashboard: %s", url)
            if started is not None:
                started(url)
            await server.serve([listener])


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises SettingError with a sentence."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingError(f"listen: cannot use the address {address.host}: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise SettingError(_why_not(error, address)) from error
    return listener


def _why_not(error: OSError, address: Address) -> str:
    at = f"{address.host}:{address.port}"
    if error.errno == errno.EADDRINUSE:
        other = f"{address.host}:{address.port + 1}"
        return f"listen: {at} is taken by another program; stop it, or take another port, for example --listen {other}"
    if error.errno == errno.EACCES:
        return f"listen: {at} needs root; take a port above 1023"
    return f"listen: cannot bind {at}: {error.strerror}"


def _warn_of_openness(settings: Settings, address: Address) -> None:
    if address.is_loopback:
        return
    if settings.open_to_network:
        logger.warning("whoever can reach %s and needs no token may look and send (--open-to-network)", settings.listen)
    if settings.tls_cert is None:
        logger.warning(
            "%s speaks no TLS: tokens can be read on the way; see --tls-cert, or use a proxy", settings.listen
        )


def _tls(settings: Settings) -> dict[str, Any]:
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
            f"tls_cert: {certificate} and its key cannot be used: {error}; both are PEM files"
        ) from error
    try:
        if client_ca is not None:
            context.load_verify_locations(client_ca)
    except (OSError, ValueError) as error:
        raise SettingError(f"tls_client_ca: {client_ca} cannot be used: {error}; it is a PEM file") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to type its password")


class Server(uvicorn.Server):
    """uvicorn's server, which tells agents that it goes down before it hangs up."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(parts),
                **_tls(parts.settings),
                ws="websockets-sansio",
                ws_max_size=FRAME_BYTES_MAX,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PING_SECONDS,
                ws_per_message_deflate=False,  # costs more CPU than everything else together
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        self._parts = parts

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal asks us to end; the second one, at once.

        uvicorn's own would raise the signal again once it is done, and so end the process before the parts are stopped.
        """
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        systemd.tell(systemd.READY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        systemd.tell(systemd.STOPPING)
        await say_goodbye(self._parts)
        await super().shutdown(sockets)


async def say_goodbye(parts: Parts) -> None:
    """Store what has arrived, acknowledge it, and send the agents away."""
    service = parts.service
    service.reception.is_closed = True
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(parts.journal.flush(), STOP_SECONDS)
    refused = wire.Refused(reason=wire.RefusedReason.SHUTTING_DOWN, detail="the server is going down", retry=True)
    for session in service.roster:
        if session.peer is not None:
            session.peer.dismiss(refused)
    await service.roster.emptied(within_seconds=GOODBYE_SECONDS)
