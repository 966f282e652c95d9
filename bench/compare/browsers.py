"""Stands for browsers: each takes all that the server tells; the first one notes how late every second's tick comes.

    python -m bench.compare.browsers --port PORT --count N

Says "ready" once all have their snapshot, then a line a second: the seconds from the beginning of the server's work on
the tick to its arrival, as JSON.
"""

import asyncio
import time

import msgspec
from bench.compare.started import run
from websockets.asyncio.client import ClientConnection, connect

_TICK = '{"type":"tick","at":'


async def _watch(connection: ClientConnection, *, tells: bool) -> None:
    async for frame in connection:
        if tells and isinstance(frame, str) and frame.startswith(_TICK):
            at = float(frame[len(_TICK) : frame.find(",", len(_TICK))].rstrip("}"))
            print(msgspec.json.encode(time.time() - at).decode(), flush=True)


async def stand_for(count: int, port: int) -> None:
    connections = []
    for _ in range(count):
        connection = await connect(
            f"ws://127.0.0.1:{port}/ws/live", compression=None, proxy=None, max_size=None, ping_interval=None
        )
        await connection.recv()
        connections.append(connection)
    print("ready", flush=True)
    await asyncio.gather(*(_watch(one, tells=number == 0) for number, one in enumerate(connections)))


if __name__ == "__main__":
    run(__doc__, stand_for, of="count")
