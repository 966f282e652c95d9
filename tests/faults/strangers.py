"""Who speaks to a server without being a browser or an agent: bytes over a socket, and a clock that a test moves."""

import contextlib
import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.server.running_server import DEADLINE_SECONDS, RunningServer, until

from oomwatch.web.connections import Connections

UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
SMALL_BYTES = 4096  # what a stranger's socket takes before it is read: the kernel makes it some more


class Clock:
    """One that stands still until it is moved."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def stranger(server: RunningServer, said: str = "") -> Iterator[socket.socket]:
    """A connection that has said so much."""
    place = urlsplit(server.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BYTES)
        connection.settimeout(DEADLINE_SECONDS)
        connection.connect((place.hostname, place.port))
        connection.sendall(said.encode())
        yield connection


@contextlib.contextmanager
def silent_browser(server: RunningServer, path: str = "/ws/live") -> Iterator[socket.socket]:
    """A WebSocket whose other end has read its handshake, and reads nothing more."""
    with stranger(server, UPGRADE.format(path=path)) as connection:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert head.startswith(b"HTTP/1.1 101 ")
        yield connection


def frame(opcode: int, content: bytes = b"", *, last: bool = True, packed: bool = False) -> bytes:
    """A frame from a client, of less than 64 KiB."""
    first = opcode | (0x80 if last else 0) | (0x40 if packed else 0)
    length = bytes([0x80 | len(content)]) if len(content) < 126 else b"\xfe" + len(content).to_bytes(2, "big")
    mask = os.urandom(4)
    return bytes([first]) + length + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(content))


def ends(connection: socket.socket) -> bytes:
    """All that is still said on it, once it is over."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            said += part
    return said


def until_there_are(count: int, connections: Connections, server: RunningServer) -> None:
    until(f"{count} connections", lambda: server.call(lambda: len(connections)) == count)
