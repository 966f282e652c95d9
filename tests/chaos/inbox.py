"""Who is told of alerts: answers well, answers 500, or answers late; and keeps what it took, by the ids of messages."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from tests.server.receiver import Answer, Received, receiving

LATE_SECONDS = 60.0


class Inbox:
    """What it answered with an error it did not take. What is told twice under one id has to say the same."""

    def __init__(self) -> None:
        self.url = ""
        self._lock = threading.Lock()
        self._taken: dict[str, Received] = {}
        self._is_broken = False
        self._held: threading.Event | None = None
        self.requests = 0
        self.changed: list[str] = []  # ids of messages that said something else when they came again

    def fail(self, *, on: bool) -> None:
        self._is_broken = on

    def hang(self, *, on: bool) -> None:
        if on:
            self._held = threading.Event()
        elif self._held is not None:
            self._held.set()
            self._held = None

    def told(self) -> Counter[tuple[str, str]]:
        """How often of each node that its alert fires, or is over."""
        with self._lock:
            alerts = [alert for message in self._taken.values() for alert in message.json()["alerts"]]
        return Counter((alert["labels"]["node"], alert["status"]) for alert in alerts)

    def respond(self, request: Received) -> Answer:
        with self._lock:
            self.requests += 1
            if self._is_broken:
                return Answer(500, body=b"out of order")
            message = request.headers["webhook-id"]
            before = self._taken.setdefault(message, request)
            if before.body != request.body:
                self.changed.append(message)
            return Answer(hold=self._held)


@contextlib.contextmanager
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    with receiving(made.respond) as receiver:
        made.url = receiver.url
        try:
            yield made
        finally:
            made.hang(on=False)
