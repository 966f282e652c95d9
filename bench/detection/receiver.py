"""The webhook receiver of every side, and when it was told of which card."""

import contextlib
import http.server
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec


class Card(NamedTuple):
    node: str
    gpu: str


class Told:
    """Seconds (monotonic) at which each side was first told of each card, by the path of its webhook."""

    def __init__(self) -> None:
        self.url = ""
        self._first: dict[str, dict[Card, float]] = {}
        self._changed = threading.Condition()

    def of(self, side: str) -> dict[Card, float]:
        with self._changed:
            return dict(self._first.get(side, {}))

    def note(self, side: str, card: Card, at: float) -> None:
        with self._changed:
            self._first.setdefault(side, {}).setdefault(card, at)
            self._changed.notify_all()

    def wait_for(self, sides: list[str], count: int, seconds: float) -> bool:
        """Whether every side was told of so many cards in time."""
        with self._changed:
            return self._changed.wait_for(lambda: all(len(self._first.get(one, ())) >= count for one in sides), seconds)


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # else the kernel drops connections in a burst, and they try again after 1 and 3 s


@contextlib.contextmanager
def receiving() -> Iterator[Told]:
    """Any body in the shape of Alertmanager's webhook, of alerts with the labels node and gpu."""
    told = Told()

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            at = time.monotonic()
            body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
            for alert in body["alerts"]:
                if alert["status"] == "firing" and "gpu" in alert["labels"]:
                    told.note(self.path.strip("/"), Card(alert["labels"]["node"], alert["labels"]["gpu"]), at)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with _Server(("127.0.0.1", 0), Hook) as server:
        told.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield told
        server.shutdown()
