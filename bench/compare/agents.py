"""Stands for agents: one connection a node, a sample a second, each at the moment of the second that a real one takes.

    python -m bench.compare.agents --port PORT --nodes N

One whose connection ends connects again and goes on where the server's welcome says, as real agents do.
"""

import asyncio
import contextlib
import math
import random
import time

from bench.compare.filling import Filling
from bench.compare.readings import PERIOD_SECONDS, body, frame, hello, node_name
from bench.compare.started import run
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from oomwatch import wire
from oomwatch_agent.pace import offset_seconds

APART = 7  # seconds between what two neighbours read
KEPT = 600  # unsent samples
AGAIN_SECONDS = (0.5, 2.0)  # as long as a real agent waits first
AT_ONCE = 64  # that connect at the start


class Agent:
    """One node's."""

    def __init__(self, number: int, filling: Filling, url: str) -> None:
        self._number, self._filling, self._url = number, filling, url
        self._due = math.ceil(time.time()) + offset_seconds(node_name(number), 1.0)
        self._seq = 0
        self._unsent: list[tuple[int, bytes]] = []  # acknowledged ones are dropped
        self.is_welcome = asyncio.Event()

    async def run(self, door: asyncio.Semaphore) -> None:
        while True:
            with contextlib.suppress(OSError, WebSocketException, asyncio.TimeoutError):
                async with door:
                    connection = await self._come_in()
                await self._talk(connection)
            self.is_welcome.clear()
            await asyncio.sleep(random.uniform(*AGAIN_SECONDS))

    async def _come_in(self) -> ClientConnection:
        connection = await connect(self._url, compression=None, proxy=None, ping_interval=None)
        await connection.send(wire.encode(hello(node_name(self._number), time.time())), text=True)
        welcome = wire.decode_server(await connection.recv())
        if not isinstance(welcome, wire.Welcome):
            raise ConnectionError(f"not welcome: {welcome}")  # as a busy server says; it is tried again
        self._forget(welcome.resume_after_seq)
        self.is_welcome.set()
        return connection

    async def _talk(self, connection: ClientConnection) -> None:
        listening = asyncio.create_task(self._hear(connection))
        try:
            for _, late in list(self._unsent):
                await connection.send(late, text=True)
            while not listening.done():
                await asyncio.sleep(self._due - time.time())
                await connection.send(self._next(), text=True)
        finally:
            listening.cancel()

    def _next(self) -> bytes:
        """The next sample. While nobody listens, time goes on."""
        now = time.time()
        self._due += 1 + max(0, math.floor(now - self._due))
        self._seq += 1
        second = (int(now) + APART * self._number) % PERIOD_SECONDS
        told = frame(self._seq, now, body(second, self._filling.of(self._number)))
        self._unsent = [*self._unsent[-KEPT:], (self._seq, told)]
        return told

    async def _hear(self, connection: ClientConnection) -> None:
        with contextlib.suppress(WebSocketException):
            async for heard in connection:
                message = wire.decode_server(heard)
                if isinstance(message, wire.Ack):
                    self._forget(message.seq)

    def _forget(self, seq: int) -> None:
        self._unsent = [one for one in self._unsent if one[0] > seq]


async def stand_for(nodes: int, port: int) -> None:
    filling, door = Filling(nodes), asyncio.Semaphore(AT_ONCE)
    agents = [Agent(number, filling, f"ws://127.0.0.1:{port}/ws/agent") for number in range(nodes)]
    tasks = [asyncio.create_task(one.run(door)) for one in agents]
    for one in agents:
        await one.is_welcome.wait()
    await filling.obey()
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    run(__doc__, stand_for, of="nodes")
