"""Agents and browsers before several servers: what they do and see while servers come and go."""

import asyncio
import contextlib
import gc
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import websockets
from tests.acceptance.programs import Program
from tests.acceptance.several import Replica
from tests.server.house import hello, sample
from tests.server.receiver import Receiver
from websockets.asyncio.client import connect

from oomwatch import wire

AGAIN_SECONDS = 0.3
SAMPLE_SECONDS = 0.5
TURNS = 20  # of an event loop, in which what was closed is gone
FULL_GIB, FREE_GIB = 79.0, 10.0
STAND_IN = "gpu-"  # how the names of their nodes begin


def real_agent(node: str, port: int, scenario: str, speed: float, folder: Path) -> Program:
    """`oomwatch-agent` with a simulated training."""
    simulation = ["--simulate", scenario, "--simulate-speed", str(speed), "--simulate-gpus", "1"]
    where = ["--server", f"ws://127.0.0.1:{port}", "--node", node]
    return Program(f"agent-{node}", ["-m", "oomwatch_agent", *where, *simulation], folder)


class StandInAgent:
    """Speaks the wire as an agent does: numbers what it says, keeps it until it is stored, goes on where it is told.

    `is_newer`: it tells more than these servers know.
    """

    def __init__(self, node: str, url: str, *, is_newer: bool = False) -> None:
        self.node = node
        self._is_newer = is_newer
        self.used_gib = FREE_GIB
        self.connects = 0
        self.refused: list[str] = []
        self.is_connected = False
        self._url = url
        self._seq = 0
        self._outbox: dict[int, bytes] = {}
        self._session = f"{node}-{time.time_ns()}"

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError, websockets.WebSocketException, asyncio.TimeoutError):
                await self._connection()
            self.is_connected = False
            await asyncio.sleep(AGAIN_SECONDS)

    async def _connection(self) -> None:
        async with connect(f"{self._url}/ws/agent", compression=None, proxy=None, open_timeout=5) as line:
            await line.send(wire.encode(hello(self.node, session=self._session, sent_at=time.time())).decode())
            first = wire.decode_server(await asyncio.wait_for(line.recv(), 10))
            if isinstance(first, wire.Refused):
                self.refused.append(first.detail)
            if not isinstance(first, wire.Welcome):
                return
            self.connects += 1
            self.is_connected = True
            self._forget(first.resume_after_seq)
            for frame in list(self._outbox.values()):
                await line.send(frame.decode())
            hearing = asyncio.ensure_future(self._hear(line))
            try:
                while not hearing.done():
                    await line.send(self._next().decode())
                    await asyncio.wait([hearing], timeout=SAMPLE_SECONDS)
            finally:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)

    def _next(self) -> bytes:
        self._seq += 1
        told = wire.encode(sample(self._seq, self.used_gib, time.time()))
        if self._is_newer:
            new = (
                {"type": "smell", "seq": self._seq}
                if self._seq % 10 == 0
                else {**msgspec.json.decode(told), "mood": {}}
            )
            told = msgspec.json.encode(new)
        self._outbox[self._seq] = told
        return told

    async def _hear(self, line: Any) -> None:
        async for frame in line:
            message = wire.decode_server(frame)
            if isinstance(message, wire.Ack):
                self._forget(message.seq)

    def _forget(self, seq: int) -> None:
        self._outbox = {number: frame for number, frame in self._outbox.items() if number > seq}


class Watcher:
    """Watches whatever answers at an address, and connects again as the page does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.alerts: dict[str, dict[str, Any]] = {}
        self.is_connected = False

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError, websockets.WebSocketException, asyncio.TimeoutError):
                address = f"ws{self.url.removeprefix('http')}/ws/live"
                async with connect(address, compression=None, proxy=None, open_timeout=5, max_size=None) as line:
                    async for frame in line:
                        self._take(msgspec.json.decode(frame))
            self.is_connected = False
            await asyncio.sleep(AGAIN_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "snapshot":
            self.is_connected = True
            self.alerts = {one["id"]: one for one in message.get("alerts", ())}
        elif message["type"] == "alert":
            self.alerts[message["alert"]["id"]] = message["alert"]

    def firing(self) -> dict[str, str]:
        """Ids of the alerts that fire of stand-ins that are full, by node."""
        firing = [one for one in list(self.alerts.values()) if one["state"] == "firing" and one["alert"] == "full"]
        return {one["labels"]["node"]: one["id"] for one in firing if one["labels"]["node"].startswith(STAND_IN)}


W = TypeVar("W", bound=Watcher)


class Browser(Watcher):
    """Watches one replica."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica.url)
        self.replica = replica


class Crowd(Generic[W]):
    """Agents and browsers, in a thread of their own."""

    def __init__(self, agents: Mapping[str, StandInAgent], browsers: list[W]) -> None:
        self.agents = agents
        self.browsers = browsers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="crowd")
        self._work: asyncio.Future[Any] | None = None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        agents, browsers = [one.run() for one in self.agents.values()], [one.run() for one in self.browsers]
        self._work = asyncio.gather(*agents, *browsers)
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._work)
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        for _ in range(TURNS):
            self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(lambda: self._work and self._work.cancel())
            self._thread.join(30)


def drop_cut_connections() -> None:
    """A connection that was cut while it opened is left to the garbage collector, which would tell another test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def delivered(receiver: Receiver) -> Counter[tuple[str, str]]:
    """How often one that drops known message ids was told of each stand-in that its alert fires, or is over."""
    messages = {one.headers["webhook-id"]: one.json() for one in receiver.received}
    alerts = [alert for message in messages.values() for alert in message["alerts"]]
    told = [(alert["labels"].get("node", ""), alert["status"]) for alert in alerts]
    return Counter((node, status) for node, status in told if node.startswith(STAND_IN))
