"""A real server on loopback, in a thread of the test's process, and clients that speak to it over real sockets."""

import asyncio
import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import websockets.sync.client
from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from oomwatch import wire
from oomwatch.listener import bind
from oomwatch.settings import Address, Settings
from oomwatch.web.app import running
from oomwatch.web.connections import Connections
from oomwatch.web.parts import Parts
from oomwatch.web.server import Server

DEADLINE_SECONDS = 60.0
# For programs that are started in another folder: where this one found its modules.
ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join(str(Path(place).resolve()) for place in sys.path if place)}
T = TypeVar("T")
Self = TypeVar("Self", bound="AgentClient")

RULES = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 1s
    summary: {en: "GPU {gpu} of {node} is {value} full", zh: "{node} 的 GPU {gpu} 已满 {value}"}
    advice:
      - "lower gpu_memory_utilization"
"""


def until(what: str, look: Callable[[], T | None]) -> T:
    """What `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)  # between two looks, never instead of one
    return found


class RunningServer:
    """The parts of the server are there to be looked at; only its own thread may call them (`call`)."""

    def __init__(self, url: str, parts: Parts, stop: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.parts = parts
        self.stop = stop
        self.loop = loop

    def call(self, work: Callable[[], T]) -> T:
        """What `work` gives in the server's own thread, between two things that it does."""

        async def in_the_loop() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(in_the_loop(), self.loop).result(DEADLINE_SECONDS)

    def end_task(self, name: str) -> None:
        """Let a task of the server end, as a defect would."""
        (task,) = self.call(lambda: [one for one in asyncio.all_tasks() if one.get_name() == name])
        self.call(task.cancel)

    def websocket(self, path: str, **options: Any) -> Any:
        """A connection, as a context manager."""
        options.setdefault("compression", None)
        return websockets.sync.client.connect(
            f"ws{self.url.removeprefix('http')}{path}", max_size=None, proxy=None, **options
        )

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return httpx.request(method, self.url + path, timeout=DEADLINE_SECONDS, trust_env=False, **options)


def settings_in(folder: Path, **changes: Any) -> Settings:
    """A database and a rule file in `folder`, messages stored ten times a second."""
    rules = folder / "alerts.yaml"
    if not rules.exists():
        rules.write_text(RULES, encoding="utf-8")
    settings = msgspec.structs.replace(Settings(), db=str(folder / "oomwatch.db"), rules=rules, flush_interval=0.1)
    return msgspec.structs.replace(settings, **changes)


@contextlib.contextmanager
def serving(
    settings: Settings, connections: Connections | None = None, *, clock: Callable[[], float] = time.time
) -> Iterator[RunningServer]:
    """A server that is ready, and stopped at the end as SIGTERM stops it."""
    ready = threading.Event()
    found: list[RunningServer] = []
    failures: list[BaseException] = []

    async def serve() -> None:
        with contextlib.closing(bind(Address("127.0.0.1", 0))) as listener:
            async with running(settings, clock=clock) as parts:
                server = Server(parts, connections)
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                stop = functools.partial(setattr, server, "should_exit", True)
                found.append(RunningServer(url, parts, stop, asyncio.get_running_loop()))
                ready.set()
                await server.serve([listener])

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="server")
    thread.start()
    ready.wait(DEADLINE_SECONDS)
    try:
        if failures:
            raise failures[0]
        yield found[0]
    finally:
        for server in found:
            server.stop()
        thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()
    assert not failures


class AgentClient:
    """A hand-written agent: says what it is told to say."""

    def __init__(self, server: RunningServer, **options: Any) -> None:
        self._opening = server.websocket("/ws/agent", **options)
        self.connection: Connection

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self.connection = self._opening.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def say(self, *messages: msgspec.Struct) -> None:
        for message in messages:
            self.connection.send(wire.encode(message).decode())

    def hear(self) -> wire.ServerMessage:
        message = wire.decode_server(self.connection.recv(timeout=DEADLINE_SECONDS))
        assert not isinstance(message, wire.Unknown)
        return message

    def greet(self, greeting: wire.Hello) -> wire.Welcome:
        self.say(greeting)
        welcome = self.hear()
        assert isinstance(welcome, wire.Welcome), welcome
        return welcome

    def hear_ack_of(self, seq: int) -> None:
        """Wait until everything up to `seq` is acknowledged."""
        while True:
            message = self.hear()
            assert isinstance(message, wire.Ack), message
            if message.seq >= seq:
                return

    def hear_refusal(self) -> wire.Refused:
        refused = self.hear()
        assert isinstance(refused, wire.Refused), refused
        return refused

    def close_code(self) -> int:
        """How the server closes the connection, after whatever else it says."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.connection.recv(timeout=DEADLINE_SECONDS)
        code = self.connection.close_code
        assert code is not None
        return code
