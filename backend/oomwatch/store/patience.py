"""Hangs up on a server that does not answer.

PostgreSQL's own time limits are kept by PostgreSQL: one that is stopped where it is, or behind a network that swallows
packets, keeps none, and its driver waits for ever. A connection that waits for too long is shut from this side, and who
waits on it gets an error.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOOK_SECONDS = 0.5


class Patience:
    """One thread looks after every connection that waits. It ends with `close`, or with the process."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waiting: dict[object, tuple[float, int]] = {}  # until when, on which file descriptor
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def with_(self, descriptor: int) -> Iterator[None]:
        """While the block waits on this connected socket."""
        ticket = object()
        with self._lock:
            self._waiting[ticket] = (time.monotonic() + self.seconds, descriptor)
            self._start()
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[ticket]

    def close(self) -> None:
        """Look after nobody any more."""
        self._closed.set()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="database patience", daemon=True)
            self._thread.start()

    def _look(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            now = time.monotonic()
            with self._lock:
                for until, descriptor in self._waiting.values():
                    if until < now:
                        _hang_up(descriptor)


def _hang_up(descriptor: int) -> None:
    """Shut, and leave the closing to the one who waits: the number must not name another connection meanwhile."""
    with suppress(OSError), socket.socket(fileno=_copied(descriptor)) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def _copied(descriptor: int) -> int:
    return socket.dup(descriptor)
