"""One server process, from binding its address to the last goodbye."""

import asyncio
import contextlib
import gc
import logging
import socket
from collections.abc import Callable

from oomwatch import wire
from oomwatch.listener import bind
from oomwatch.settings import Address, Settings, address_of
from oomwatch.store.errors import StoreError
from oomwatch.web import systemd
from oomwatch.web.app import create_app, running
from oomwatch.web.connections import Connections
from oomwatch.web.heap import share_one_heap
from oomwatch.web.parts import Parts
from oomwatch.web.program import STOP_SECONDS, Program, tls
from oomwatch.web.waiting import until_reachable

GOODBYE_SECONDS = 1.0
AGAIN_SECONDS = 1.0  # between two starts, where the database went away in the middle of the first
COLLECT_AFTER = 20_000, 20, 50  # objects; collections of the young ones; of the older ones

logger = logging.getLogger(__name__)


async def serve(settings: Settings, *, started: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM. `started` is told the address in use, as a URL.

    Raises what `app.running` raises, and SettingError where the address cannot be bound.
    """
    address = address_of(settings)
    _warn_of_openness(settings, address)
    tls(settings)  # before anything else is begun
    share_one_heap()
    with contextlib.closing(bind(address)) as listener:
        async with contextlib.AsyncExitStack() as stack:
            parts = await _started(settings, listener, stack)
            if parts is None:
                return
            server = Server(parts)
            url = Address(address.host, listener.getsockname()[1]).url
            if settings.tls_cert is not None:
                url = "https" + url.removeprefix("http")
            logger.info("dashboard: %s", url)
            _spare_what_stays()
            if started is not None:
                started(url)
            await server.serve([listener])


async def _started(settings: Settings, listener: socket.socket, stack: contextlib.AsyncExitStack) -> Parts | None:
    """The parts of a server; None where a signal asks it to end before.

    One of several waits for its PostgreSQL, and again where that goes away while it starts.
    """
    if settings.cluster_nats is None:
        return await stack.enter_async_context(running(settings))
    while await until_reachable(settings, listener):
        try:
            return await stack.enter_async_context(running(settings))
        except StoreError as error:  # noqa: PERF203 - one start a second
            if not error.may_pass:
                raise
            logger.warning("%s; this server starts anew", error)
            await asyncio.sleep(AGAIN_SECONDS)
    return None


def _spare_what_stays() -> None:
    """Have Python look for garbage among what comes and goes, and not again and again through all that stays.

    By default it does so every few hundred objects: a twentieth of the server's CPU, and with ten thousand GPUs
    some tenths of a second at once.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _warn_of_openness(settings: Settings, address: Address) -> None:
    if address.is_loopback:
        return
    if settings.open_to_network:
        logger.warning("whoever can reach %s and needs no token may look and send (--open-to-network)", settings.listen)
    if settings.tls_cert is None:
        logger.warning(
            "%s speaks no TLS: tokens can be read on the way; see --tls-cert, or use a proxy", settings.listen
        )


class Server(Program):
    """uvicorn's server, which tells agents that it goes down before it hangs up."""

    def __init__(self, parts: Parts, connections: Connections | None = None) -> None:
        super().__init__(create_app(parts), parts.settings, connections)
        self._parts = parts

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._parts.crew.start("connections", self.connections.watch())
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
