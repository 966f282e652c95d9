"""Stands for people who watch the fleet in Grafana: each asks Prometheus for what the first view of our page shows.

    python -m bench.compare.viewers --port PORT --count N

Says "ready" once each has asked. Every five seconds, the least that Grafana lets a dashboard wait, each asks for the
usage of every GPU and of every host and for the alerts: three questions, where a board has some dozen. A connection
each, kept, and the answers are not looked at.
"""

import asyncio
import urllib.parse

from bench.compare.started import run

EVERY_SECONDS = 5.0
QUESTIONS = ("oomwatch_gpu_used_ratio", "oomwatch_host_memory_ratio", "ALERTS")
_LENGTH = b"content-length:"


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: str) -> None:
    path = f"/api/v1/query?{urllib.parse.urlencode({'query': question})}"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    status, *fields = head.lower().split(b"\r\n")
    assert b" 200 " in status, head.decode()
    length = next((int(field[len(_LENGTH) :]) for field in fields if field.startswith(_LENGTH)), None)
    if length is not None:
        await reader.readexactly(length)
        return
    while size := int(await reader.readline(), 16):  # in chunks, which a long answer comes in
        await reader.readexactly(size + len(b"\r\n"))
    await reader.readline()


async def _watch(port: int, first: asyncio.Event, offset_seconds: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    loop = asyncio.get_running_loop()
    at = loop.time() + offset_seconds
    while True:
        for question in QUESTIONS:
            await _ask(reader, writer, question)
        first.set()
        at += EVERY_SECONDS
        await asyncio.sleep(max(0.0, at - loop.time()))


async def stand_for(count: int, port: int) -> None:
    """People do not all look in the same moment."""
    firsts = [asyncio.Event() for _ in range(count)]
    watching = [
        asyncio.create_task(_watch(port, first, EVERY_SECONDS * number / count)) for number, first in enumerate(firsts)
    ]
    for first in firsts:
        await first.wait()
    print("ready", flush=True)
    await asyncio.gather(*watching)


if __name__ == "__main__":
    run(__doc__, stand_for, of="count")
