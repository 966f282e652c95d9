"""The open connections: how many there may be, and who is cut off because nothing comes of them.

uvicorn waits as long as a client likes: for a request that never ends, and for one who never reads what it is sent.
Whoever does neither harm nor good for a while is cut off here, and no one address may have all there is.
"""

import asyncio
import logging
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from oomwatch.access.addresses import THIS_MACHINE, Network, home, is_in
from oomwatch.web.inbox import LENDER, Inbox

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

CONNECTIONS_MAX = 65_536
FILES_KEPT = 256  # of the process' files: for the database, reports, channels, and whoever is sent away
REQUEST_SECONDS = 15.0  # for the head of a request, and for the rest of one that was answered
READING_SECONDS = 30.0  # nothing of what was sent was taken
SWEEP_SECONDS = 1.0
SAID_AGAIN_SECONDS = 60.0
SAID_MOST = 20  # sentences in that time
FRAGMENTS_MAX = 1024  # of one message: they may be empty, and so count nothing towards its size

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 34\r\n\r\nthere are too many connections now"
)

_HANDSHAKE = b"\x16\x03"  # how whoever speaks TLS begins: a record of the handshake, of a version 3 (RFC 8446, 5.1)
# A client of TLS takes an answer in plain HTTP for "no TLS here"; without one it would take the server to be down.
_NO_TLS = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 29\r\n\r\n"
    b"no TLS is spoken on this port"
)

logger = logging.getLogger(__name__)


def files_at_most() -> int:
    """How many files this process may have open, after it asked for as many as it may ask for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_KEPT if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return CONNECTIONS_MAX + FILES_KEPT if soft == resource.RLIM_INFINITY else soft


def connections_at_most(files: int) -> int:
    """What is left of them for connections: of very few files the half."""
    return min(CONNECTIONS_MAX, max(files - FILES_KEPT, files // 2))


class _Watched:
    """One connection, as the last sweeps saw it."""

    def __init__(self, protocol: "Http | WebSocket", owner: str, now: float) -> None:
        self.protocol = protocol
        self.owner = owner  # an IPv4 address, or an IPv6 network
        self.request: object = None  # the last one
        self.idle_since: float | None = now
        self.unread_bytes = 0
        self.unread_since: float | None = None


class _Warnings:
    """Sentences for the log, each at most once a minute, and few: whoever attacks must not fill it."""

    def __init__(self) -> None:
        self._said_at: dict[str, float] = {}

    def say(self, key: str, sentence: str, now: float) -> None:
        if now - self._said_at.get(key, float("-inf")) < SAID_AGAIN_SECONDS:
            return
        self._said_at = {one: at for one, at in self._said_at.items() if now - at < SAID_AGAIN_SECONDS}
        if len(self._said_at) < SAID_MOST:
            self._said_at[key] = now
            logger.warning("%s", sentence)


class Connections:
    """Everyone who is connected. `clock` never jumps. Used from the event loop only.

    `proxies` and this machine's own may have all there are: they come for others.
    """

    def __init__(
        self,
        at_most: int,
        *,
        proxies: Sequence[Network] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.at_most = at_most
        self.of_one_address = max(1, at_most // 2)
        self._proxies = (*THIS_MACHINE, *proxies)
        self.turned_away_total = 0
        self.cut_off_total = 0
        self._clock = clock
        self._open: dict[asyncio.Transport, _Watched] = {}
        self._by_owner: Counter[str] = Counter()
        self._warnings, self._of_tls = _Warnings(), _Warnings()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, transport: asyncio.Transport, protocol: "Http | WebSocket") -> bool:
        """Whether there is room for a new connection, or one that goes on by another protocol."""
        known = self._open.get(transport)
        if known is not None:
            known.protocol = protocol
            return True
        address = _address(transport)
        owner = home(address)
        if len(self._open) >= self.at_most:
            return self._is_full(f"{self.at_most} connections are open", "all", "raise ulimit -n where it is too low")
        if self._by_owner[owner] >= self.of_one_address and address and not is_in(address, self._proxies):
            return self._is_full(
                f"{self.of_one_address} connections of {owner} are open",
                owner,
                "what connects there? if a proxy does, --trusted-proxies lets it have more",
            )
        self._open[transport] = _Watched(protocol, owner, self._clock())
        self._by_owner[owner] += 1
        return True

    def lose(self, transport: asyncio.Transport) -> None:
        """A connection is over."""
        watched = self._open.pop(transport, None)
        if watched is None:
            return
        self._by_owner[watched.owner] -= 1
        if not self._by_owner[watched.owner]:
            del self._by_owner[watched.owner]

    def hear_tls(self, transport: asyncio.Transport) -> None:
        """Somebody speaks TLS to a server that speaks none. uvicorn would say of a request that it is invalid."""
        owner = home(_address(transport))
        self._of_tls.say(
            owner,
            f"{owner} speaks TLS to this port, which speaks none: have it write ws:// or http:// in place of wss:// or "
            "https:// (an agent in its --server), or give this server a certificate with --tls-cert",
            self._clock(),
        )

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Cut off whoever takes its time for nothing."""
        now = self._clock()
        for transport, watched in list(self._open.items()):
            why = _stuck(transport, watched, now)
            if why is not None:
                self.cut_off_total += 1
                self._warnings.say("cut off", f"a connection of {watched.owner} is cut off: {why}", now)
                self.lose(transport)
                transport.abort()

    def _is_full(self, what: str, key: str, remedy: str) -> bool:
        self.turned_away_total += 1
        self._warnings.say(key, f"{what}, and no more are taken; {remedy}", self._clock())
        return False


def _stuck(transport: asyncio.Transport, watched: _Watched, now: float) -> str | None:
    """Why this one is to be cut off."""
    unread_bytes = _unread_bytes(transport)
    if not unread_bytes or unread_bytes < watched.unread_bytes:
        watched.unread_since = None
    watched.unread_bytes = unread_bytes
    if unread_bytes:
        watched.unread_since = now if watched.unread_since is None else watched.unread_since
        if now - watched.unread_since > READING_SECONDS:
            return f"it read nothing for {READING_SECONDS:g} s"
    return _unasked(watched, now)


def _unread_bytes(transport: asyncio.Transport) -> int:
    try:
        return transport.get_write_buffer_size()
    except AttributeError:  # asyncio's of TLS, closed twice: it waits for the other side's goodbye, 30 s at most
        return 0


def _unasked(watched: _Watched, now: float) -> str | None:
    request, is_at_work = watched.protocol.last_request()
    if is_at_work or request is not watched.request:
        watched.request, watched.idle_since = request, None
    if is_at_work:
        return None
    watched.idle_since = now if watched.idle_since is None else watched.idle_since
    return f"no whole request came within {REQUEST_SECONDS:g} s" if now - watched.idle_since > REQUEST_SECONDS else None


def _address(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


class Http(H11Protocol):
    """uvicorn's, with its place among the connections."""

    def __init__(self, connections: Connections, /, **options: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(**options)
        self._connections = connections
        self._is_sent_away = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if not self._connections.take(transport, self):
            self._is_sent_away = True
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.lose(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_sent_away:
            return
        if data.startswith(_HANDSHAKE) and self.last_request()[0] is None:  # it is no part of a request's content
            self._is_sent_away = True
            self._connections.hear_tls(self.transport)
            self.transport.write(_NO_TLS)
            self.transport.close()
            return
        super().data_received(data)

    def last_request(self) -> tuple[object, bool]:
        """The last one, and whether its answer is yet to be finished."""
        cycle: Any = self.cycle  # None before the first one
        return cycle, cycle is not None and not cycle.response_complete


class WebSocket(WebSocketsSansIOProtocol):
    """uvicorn's, with its place among the connections. It holds no more than a message for whoever does not read."""

    def __init__(self, connections: Connections, /, **options: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(**options)
        self._connections = connections
        self._fragments = 0
        self._is_full = False
        self._inbox: Inbox | None = None
        self._parts: list[bytes] = []  # of a message for it that comes in several frames

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.take(self.transport, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.lose(self.transport)
        super().connection_lost(exc)
        if self._inbox is not None:
            self._inbox.lose()

    def last_request(self) -> tuple[object, bool]:
        """Its own; that it is silent is for pings and for the protocol to judge."""
        return self, True

    async def run_asgi(self) -> None:
        self.scope["state"][LENDER] = self
        await super().run_asgi()

    def lend(self, inbox: Inbox) -> None:
        """See web/inbox.py."""
        self._inbox = inbox

    def stop_reading(self) -> None:
        if not self._is_over():
            self.transport.pause_reading()

    def go_on_reading(self) -> None:
        if not self._is_over():
            self.transport.resume_reading()

    def _is_over(self) -> bool:
        """A transport of TLS that is closed or lost raises an error where it is to pause, or to go on."""
        return self.disconnected or self.transport.is_closing()

    def give_up(self) -> None:
        self.transport.abort()

    async def send(self, message: "ASGISendEvent") -> None:
        """Whoever was given up, for want of an answer to a ping, is gone: uvicorn's own calls that a defect of ours."""
        if self.close_sent and self.handshake_complete and message["type"] == "websocket.send":
            raise ClientDisconnected
        await super().send(message)

    def pause_writing(self) -> None:
        self._is_full = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        super().resume_writing()

    def handle_ping(self) -> None:
        """Who does not read what it has is not answered either: its pings would fill the memory."""
        if self._is_full:
            self.conn.data_to_send()
        else:
            super().handle_ping()

    def handle_text(self, event: Frame) -> None:
        self._fragments = 0
        if not self._is_lent(event):
            super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._fragments = 0
        if not self._is_lent(event):
            super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        self._fragments += 1
        if self._fragments <= FRAGMENTS_MAX:
            if not self._is_lent(event):
                super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"more than {FRAGMENTS_MAX} fragments")
            self.handle_parser_exception()

    def _is_lent(self, event: Frame) -> bool:
        """Whether an inbox has the messages. It gets this one with its last part."""
        if self._inbox is None:
            return False
        self._parts.append(bytes(event.data))
        if event.fin:
            whole, self._parts = b"".join(self._parts), []
            self._inbox.put(whole)
        return True
