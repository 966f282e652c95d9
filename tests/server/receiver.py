"""A receiver of webhooks on loopback that keeps what it was sent and answers as it is told."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

DEADLINE_SECONDS = 60.0


class Answer(msgspec.Struct, frozen=True):
    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b"ok"
    hold: threading.Event | None = None  # answer only once it is set


class Received(msgspec.Struct, frozen=True):
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    at: float  # time.monotonic()
    method: str = "POST"

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@contextlib.contextmanager
def receiving(respond: "Callable[[Received], Answer] | None" = None) -> "Iterator[Receiver]":
    receiver = Receiver(respond)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.close()


class Receiver:
    """Serves at `url` from threads of its own, for tests of every kind. `respond` answers what `answer` does not."""

    def __init__(self, respond: Callable[[Received], Answer] | None = None) -> None:
        self._respond = respond
        self._changed = threading.Condition()
        self._received: list[Received] = []
        self._answers: list[Answer] = []
        self._always = Answer()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def received(self) -> list[Received]:
        """Everything so far, oldest first."""
        with self._changed:
            return list(self._received)

    def answer(self, *answers: Answer) -> None:
        """What to say to the next requests, one answer each; afterwards `always`."""
        with self._changed:
            self._answers.extend(answers)

    def always(self, answer: Answer) -> None:
        with self._changed:
            self._always = answer

    def wait_for(self, count: int, deadline_seconds: float = DEADLINE_SECONDS) -> list[Received]:
        """The requests, once there are `count`. Raises AssertionError at the deadline. Blocks: not for coroutines."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._received) >= count, deadline_seconds):
                raise AssertionError(f"{len(self._received)} of {count} requests after {deadline_seconds} s")
            return list(self._received)

    def _take(self, request: Received) -> Answer:
        with self._changed:
            self._received.append(request)
            self._changed.notify_all()
            if self._answers:
                return self._answers.pop(0)
            return self._respond(request) if self._respond is not None else self._always

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 5  # an idle connection does not keep its thread for ever

            def do_POST(self) -> None:
                if self._is_a_strangers():
                    self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
                    return
                length = int(self.headers.get("Content-Length", "0"))
                body = self.rfile.read(length)
                if len(body) < length:  # who sent it has gone in the middle: it never was one
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = receiver._take(Received(self.path, headers, body, time.monotonic(), self.command))
                if answer.hold is not None:
                    answer.hold.wait(DEADLINE_SECONDS)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked waits for no answer now
                    self._say(answer)

            def _is_a_strangers(self) -> bool:
                """Of somebody who looks for a server that had this port before: none of ours leaves the length out."""
                is_post = self.command == "POST"
                return "Upgrade" in self.headers or (is_post and "Content-Length" not in self.headers)

            def _say(self, answer: Answer) -> None:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST  # noqa: N815 - the base class' word

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' word
                pass

        return Handler
