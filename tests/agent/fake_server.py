"""A real WebSocket server on loopback that plays an oomwatch server by script."""

import http
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from oomwatch import wire

WELCOME = wire.Welcome(protocol=1, server_version="9.9", sent_at=0.0)

Script = Callable[["FakeServer", ServerConnection], Awaitable[None]]


class FakeServer:
    """Plays one script a connection (the last one for all that follow) and keeps what it heard."""

    def __init__(self, *scripts: Script, status: http.HTTPStatus | None = None) -> None:
        self._scripts = list(scripts)
        self._status = status
        self._server: Server | None = None
        self.heard: list[wire.AgentMessage | wire.Unknown] = []
        self.authorizations: list[str | None] = []
        self.connections: list[ServerConnection] = []
        self.port = 0
        self._welcomed: list[ServerConnection] = []

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws/agent"

    async def start(self) -> None:
        self._server = await serve(self._serve, "127.0.0.1", self.port, process_request=self._judge)
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def heard_of(self, *kinds: type[wire.AgentMessage]) -> list[wire.AgentMessage]:
        return [message for message in self.heard if isinstance(message, kinds)]

    def is_welcome(self, connection: ServerConnection) -> bool:
        """Whether this connection's hello was answered; from now on it was."""
        before, self._welcomed = connection in self._welcomed, [*self._welcomed, connection]
        return before

    async def all_closed(self) -> None:
        for connection in self.connections:
            await connection.wait_closed()

    def seqs(self) -> list[int]:
        return [message.seq for message in self.heard if isinstance(message, wire.Sample | wire.Event | wire.Bye)]

    def _judge(self, connection: ServerConnection, request: Request) -> Response | None:
        self.authorizations.append(request.headers.get("Authorization"))
        return None if self._status is None else connection.respond(self._status, "no")

    async def _serve(self, connection: ServerConnection) -> None:
        self.connections.append(connection)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        await script(self, connection)

    async def listen(self, connection: ServerConnection) -> AsyncIterator[wire.AgentMessage | wire.Unknown]:
        async for frame in connection:
            assert isinstance(frame, str), "one message is one text frame"
            self.heard.append(wire.decode_agent(frame))
            yield self.heard[-1]


async def say(connection: ServerConnection, message: wire.ServerMessage) -> None:
    await connection.send(wire.encode(message).decode())


def welcoming(*, resume_after: int = 0, ack: bool = True, close_after: int | None = None) -> Script:
    """A server that welcomes, acknowledges each message, closes after a bye, and if told to after some message."""

    async def script(server: FakeServer, connection: ServerConnection) -> None:
        async for message in server.listen(connection):
            if isinstance(message, wire.Hello) and not server.is_welcome(connection):
                await say(connection, msgspec.structs.replace(WELCOME, resume_after_seq=resume_after))
            elif isinstance(message, wire.Sample | wire.Event | wire.Bye):
                if ack:
                    await say(connection, wire.Ack(seq=message.seq))
                if isinstance(message, wire.Bye) or message.seq == close_after:
                    return

    return script


def refusing(reason: wire.RefusedReason, detail: str, *, retry: bool) -> Script:
    async def script(server: FakeServer, connection: ServerConnection) -> None:
        async for _ in server.listen(connection):
            await say(connection, wire.Refused(reason=reason, detail=detail, retry=retry))
            return

    return script


def asking(*requests: wire.ActRequest, once: Callable[[wire.Sample], bool] = lambda sample: sample.seq > 0) -> Script:
    """A server that welcomes, acknowledges each message, and asks for acts when a sample is such that it is time."""

    async def script(server: FakeServer, connection: ServerConnection) -> None:
        waiting = list(requests)
        async for message in server.listen(connection):
            if isinstance(message, wire.Hello) and not server.is_welcome(connection):
                await say(connection, WELCOME)
            while waiting and isinstance(message, wire.Sample) and once(message):
                await say(connection, waiting.pop(0))
            if isinstance(message, wire.Sample | wire.Event | wire.Bye):
                await say(connection, wire.Ack(seq=message.seq))
            if isinstance(message, wire.Bye):
                return

    return script
