"""What becomes of a connection that is given up."""

import asyncio
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.faults.strangers import UPGRADE
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.server import ServerState

from oomwatch.web.connections import Connections, WebSocket


class Line(asyncio.Transport):
    """Takes whatever is written."""

    def write(self, data: object) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool:
        return False


async def _silent(_scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts, and says no more."""
    await receive()
    await send({"type": "websocket.accept"})
    await asyncio.Event().wait()


async def _connected() -> WebSocket:
    config = uvicorn.Config(_silent, lifespan="off", ws_ping_interval=None, log_config=None)
    config.load()
    options: dict[str, Any] = {"config": config, "server_state": ServerState(), "app_state": {}}
    web_socket = WebSocket(Connections(10), **options)
    web_socket.connection_made(Line())
    web_socket.data_received(UPGRADE.format(path="/ws/agent").encode())
    for _ in range(100):
        if web_socket.handshake_complete:
            return web_socket
        await asyncio.sleep(0)
    raise AssertionError("no handshake")


async def _given_up() -> None:
    web_socket = await _connected()
    await web_socket.send({"type": "websocket.send", "text": "some"})
    web_socket.keepalive_timeout()
    with pytest.raises(ClientDisconnected):
        await web_socket.send({"type": "websocket.send", "text": "more"})


def test_who_answers_no_ping_is_gone_and_no_defect_of_ours() -> None:
    asyncio.run(_given_up())
