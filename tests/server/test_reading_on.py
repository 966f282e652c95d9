"""How far a connection is read ahead of who takes its messages, and what becomes of one that is given up."""

import asyncio
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.faults.strangers import UPGRADE, frame
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.server import ServerState

from oomwatch.web.connections import WAITING_BYTES, WAITING_MESSAGES, Connections, WebSocket


class Line(asyncio.Transport):
    """Notes whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def write(self, data: object) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool:
        return False


class Taker:
    """Takes a message whenever it is let."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.may_take = asyncio.Semaphore(0)

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            await self.may_take.acquire()
            self.taken.append((await receive())["text"])


async def connected() -> tuple[WebSocket, Line, Taker]:
    line, taker = Line(), Taker()
    config = uvicorn.Config(taker, lifespan="off", ws_ping_interval=None, log_config=None)
    config.load()
    options: dict[str, Any] = {"config": config, "server_state": ServerState(), "app_state": {}}
    web_socket = WebSocket(Connections(10), **options)
    web_socket.connection_made(line)
    web_socket.data_received(UPGRADE.format(path="/ws/agent").encode())
    await until(lambda: web_socket.handshake_complete)
    return web_socket, line, taker


async def until(is_so: Any) -> None:
    for _ in range(100):
        if is_so():
            return
        await asyncio.sleep(0)
    raise AssertionError("in vain")


async def one_by_one() -> bool:
    """Whether reading went on all the time."""
    web_socket, line, taker = await connected()
    for number in range(10):
        web_socket.data_received(frame(1, b"%d" % number))
        if not line.is_read:
            return False
        taker.may_take.release()
        await until(lambda: len(taker.taken) > number)  # noqa: B023 - asked at once
    return True


async def ahead(first: bytes, messages: int) -> list[str]:
    """What is taken in the end; nothing is read while so many wait, and all again once they are taken."""
    web_socket, line, taker = await connected()
    for number in range(messages):
        assert line.is_read
        web_socket.data_received(frame(1, first if number == 0 else b"%d" % number))
    assert not line.is_read
    for number in range(messages):
        taker.may_take.release()
        await until(lambda: len(taker.taken) > number)  # noqa: B023
    assert [line.is_read] == [True]  # mypy believes that nothing has changed since
    return taker.taken


def test_while_messages_are_taken_as_they_come_nobody_stops_reading() -> None:
    assert asyncio.run(one_by_one())


def test_while_some_wait_nothing_more_is_read() -> None:
    assert asyncio.run(ahead(b"0", WAITING_MESSAGES)) == ["0", "1"]


def test_a_large_one_waits_alone() -> None:
    large = b"a" * (WAITING_BYTES + 1)
    assert asyncio.run(ahead(large, 1)) == [large.decode()]


async def given_up() -> None:
    """One that goes on sending is told."""
    web_socket, _, _ = await connected()
    web_socket.keepalive_timeout()
    with pytest.raises(ClientDisconnected):
        await web_socket.send({"type": "websocket.send", "text": "more"})


def test_who_answers_no_ping_is_gone_and_no_defect_of_ours() -> None:
    asyncio.run(given_up())
