"""Stands for exporters: every node's page, ready made, at one address: /node-00000/metrics.

python -m bench.compare.exporters --port PORT --nodes N
"""

import asyncio
import time

from bench.compare.agents import APART
from bench.compare.filling import Filling
from bench.compare.readings import PERIOD_SECONDS, page
from bench.compare.started import run

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n"
_NAME_AT = len(b"GET /node-")
_DIGITS = 5


class Exporter(asyncio.Protocol):
    """One connection of Prometheus, over which it asks again and again."""

    def __init__(self, filling: Filling) -> None:
        self._filling = filling
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._asked += data
        while b"\r\n\r\n" in self._asked:
            question, self._asked = self._asked.split(b"\r\n\r\n", 1)
            node = int(question[_NAME_AT : _NAME_AT + _DIGITS])
            told = page((int(time.time()) + APART * node) % PERIOD_SECONDS, self._filling.of(node))
            self._transport.write(_HEAD % len(told) + told)


async def stand_for(nodes: int, port: int) -> None:
    filling = Filling(nodes)
    server = await asyncio.get_running_loop().create_server(
        lambda: Exporter(filling), "127.0.0.1", port, backlog=nodes + 1
    )
    async with server:
        await filling.obey()


if __name__ == "__main__":
    run(__doc__, stand_for, of="nodes")
