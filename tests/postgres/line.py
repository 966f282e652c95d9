"""A line to a PostgreSQL that a test can cut so that neither end notices."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Line:
    """Passes on what it is sent, in either direction, until it is cut. Connections stay open all the same."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._to = port
        self._ends: list[socket.socket] = []
        self._is_cut = threading.Event()
        self._threads = [threading.Thread(target=self._take)]
        self._threads[0].start()

    def cut(self) -> None:
        """Of the connections that there are; those that come later are passed on."""
        self._is_cut.set()
        self._is_cut = threading.Event()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for end in (self._listener, *self._ends):
            end.close()

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=_pass_on, args=(one, other, self._is_cut)))
                    self._threads[-1].start()


def _pass_on(one: socket.socket, other: socket.socket, is_cut: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while content := one.recv(65536):
            if not is_cut.is_set():
                other.sendall(content)
        if not is_cut.is_set():
            other.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def line_to(port: int) -> Iterator[Line]:
    line = Line(port)
    try:
        yield line
    finally:
        line.close()
