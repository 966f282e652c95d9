"""Reading goes on while few messages wait for the application, and stops while many do."""

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState
from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from oomwatch.web.readahead import FRAMES_AHEAD, ReadsAhead

DEADLINE_SECONDS = 20.0


class Line(asyncio.Transport):
    """The network's end: what was written, and whether reading has stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.stops = 0
        self._reads = True

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self._reads = False
        self.stops += 1

    def resume_reading(self) -> None:
        self._reads = True

    def is_reading(self) -> bool:
        return self._reads

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """It is not there anyway."""


class Talk:
    """A client that says numbered messages, and an application that takes them once it may."""

    def __init__(self) -> None:
        self.may_take = asyncio.Event()
        self.taken: list[str] = []
        self.line, self._client = Line(), ClientProtocol(parse_uri("ws://server/"))
        config = uvicorn.Config(
            self._application, ws_ping_interval=None, log_config=None, lifespan="off", interface="asgi3"
        )
        config.load()
        self.protocol = ReadsAhead(config, ServerState(), {})
        self.protocol.connection_made(self.line)

    async def _application(self, _scope: object, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await self.may_take.wait()
        while (message := await receive())["type"] == "websocket.receive":
            self.taken.append(message["text"])

    async def open(self) -> None:
        self._client.send_request(self._client.connect())
        self._send()
        await _until(lambda: b"\r\n\r\n" in self.line.written)
        self._client.receive_data(self.line.written)

    def say(self, first: int, last: int) -> None:
        """The messages with these numbers, in one piece."""
        for number in range(first, last + 1):
            self._client.send_text(str(number).encode())
        self._send()

    def _send(self) -> None:
        self.protocol.data_received(b"".join(self._client.data_to_send()))

    async def end(self) -> None:
        self.protocol.connection_lost(None)
        await _until(lambda: not self.protocol.tasks)


async def _until(is_so: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DEADLINE_SECONDS
    while not is_so():
        assert loop.time() < deadline
        await asyncio.sleep(0)


def test_reading_goes_on_while_few_messages_wait() -> None:
    async def story() -> None:
        talk = Talk()
        await talk.open()
        talk.say(1, FRAMES_AHEAD)
        assert talk.line.is_reading()
        talk.may_take.set()
        await _until(lambda: len(talk.taken) == FRAMES_AHEAD)
        assert talk.line.stops == 0
        await talk.end()

    asyncio.run(story())


def test_reading_stops_while_many_wait_and_goes_on_once_they_are_taken_in_order() -> None:
    async def story() -> None:
        talk = Talk()
        await talk.open()
        talk.say(1, FRAMES_AHEAD)
        talk.say(FRAMES_AHEAD + 1, FRAMES_AHEAD + 3)
        assert not talk.line.is_reading()
        assert talk.line.stops == 1
        talk.may_take.set()
        await _until(lambda: len(talk.taken) == FRAMES_AHEAD + 3)
        assert talk.taken == [str(number) for number in range(1, FRAMES_AHEAD + 4)]
        assert talk.line.is_reading()
        await talk.end()

    asyncio.run(story())
