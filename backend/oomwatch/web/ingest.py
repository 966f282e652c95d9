"""/ws/agent: the server's side of the protocol with agents (docs/reference/wire-protocol.md)."""

import asyncio
import logging
from collections import deque

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from oomwatch import __version__, wire
from oomwatch.access.token import Token
from oomwatch.service.sessions import RefusalError, Session
from oomwatch.web.inbox import LENDER, Inbox, Message
from oomwatch.web.live import until_gone
from oomwatch.web.parts import Parts, parts_of

HELLO_SECONDS = 10.0
MALFORMED_MAX = 100
REQUESTS_MAX = 100  # that wait for an agent which takes nothing
PACED_SECONDS_MAX = 15.0  # the agent's answer to our pings waits as well: for 20 s it may
NORMAL, POLICY_VIOLATION, TRY_AGAIN_LATER = 1000, 1008, 1013

logger = logging.getLogger(__name__)


async def agent_endpoint(websocket: WebSocket) -> None:
    """One connection of one agent, from its first frame to its last."""
    await websocket.accept()
    connection = Connection(websocket, parts_of(websocket))
    try:
        await connection.run()
    except WebSocketDisconnect:
        pass
    finally:
        connection.end()


class Connection:
    """Reads frames and gives them to the service; a task of its own sends what the service has to say."""

    def __init__(self, websocket: WebSocket, parts: Parts) -> None:
        self._websocket = websocket
        self._parts = parts
        self._service = parts.service
        self._session: Session | None = None
        self._sender: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._stored_seq = self._acknowledged_seq = 0
        self._requests: deque[wire.ActRequest] = deque(maxlen=REQUESTS_MAX)
        self._bye_seq: int | None = None
        self._last_word: wire.Refused | None = None
        self._dismissed = asyncio.Event()
        self._malformed_here = 0
        self._hello_bytes = 0
        self._is_paced = False
        self._token: Token | None = websocket.state.token
        self._inbox = Inbox(websocket.scope["state"][LENDER], parts.turns)

    # ------------------------------------------------------------ the service's side (Peer)

    def acknowledge(self, seq: int) -> None:
        self._stored_seq = seq
        self._news.set()

    def ask(self, request: wire.ActRequest) -> None:
        self._requests.append(request)
        self._news.set()

    def dismiss(self, refused: wire.Refused | None) -> None:
        self._last_word = refused
        self._dismissed.set()
        self._news.set()

    # ------------------------------------------------------------ the agent's side

    async def run(self) -> None:
        """Hello, then frames until the connection ends."""
        try:
            hello = await self._hello()
            stored_seq = await self._checked(hello)
            if hello.check:
                self._service.reception.check(hello)
                await self._welcome(0)
                await self._close(NORMAL, "checked")
                return
            self._session = session = self._service.reception.admit(hello, self, stored_seq, self._hello_bytes)
        except RefusalError as refusal:
            logger.warning("refused an agent from %s: %s", self._where(), refusal)
            await self._refuse(refusal.refused)
            return
        logger.info("agent of node %s connected from %s (oomwatch %s)", hello.node, self._where(), hello.agent_version)
        await self._welcome(session.stored_seq)
        self._sender = asyncio.create_task(self._send_news(), name=f"to agent of {hello.node}")
        with self._parts.keyring.held(self._token, "agent", self._revoke):
            self._inbox.open(lambda frame: self._take(session, frame))
            await until_gone(self._websocket)
            await self._inbox.over()

    def _revoke(self) -> None:
        self.dismiss(_token_refused("was revoked, has expired, or is needed now; give the agent a good one").refused)

    def end(self) -> None:
        """The connection is over, whoever ended it."""
        self._inbox.close()
        if self._sender is not None:
            self._sender.cancel()
        if self._session is not None:
            self._service.reception.leave(self._session, self)
            logger.info("agent of node %s is gone", self._session.node)

    async def _hello(self) -> wire.Hello:
        if self._parts.keyring.asks_for("agent") and (self._token is None or self._token.role != "agent"):
            raise _token_refused("is missing or wrong; give the agent the server's --token, or one of its own")
        try:
            frame = await asyncio.wait_for(self._inbox.first(), HELLO_SECONDS)
            if frame is None:
                raise WebSocketDisconnect(NORMAL)
            self._hello_bytes = len(frame)
            hello = wire.decode_agent(frame)
        except asyncio.TimeoutError:
            raise _malformed(f"no hello came within {HELLO_SECONDS:g} seconds") from None
        except wire.MalformedMessageError as error:
            raise _malformed(f"the first frame is no hello: {error}") from error
        if not isinstance(hello, wire.Hello):
            raise _malformed("the first frame is no hello")
        if self._token is not None and self._token.nodes and hello.node not in self._token.nodes:
            raise _token_refused(f'is not for node "{hello.node}", but for {", ".join(self._token.nodes)}')
        return hello

    async def _checked(self, hello: wire.Hello) -> int:
        """What is stored of the agent's session, if it speaks our protocol. Raises RefusalError."""
        if hello.protocol != wire.PROTOCOL_VERSION:
            raise RefusalError(
                wire.RefusedReason.PROTOCOL,
                f"this server ({__version__}) speaks protocol {wire.PROTOCOL_VERSION}, "
                f"the agent ({hello.agent_version}) speaks {hello.protocol}; install the same version on both",
                retry=False,
            )
        return 0 if self._service.roster.known(hello) is not None else await self._progress(hello)

    async def _progress(self, hello: wire.Hello) -> int:
        try:
            return await self._parts.read(self._parts.store.progress, hello.node, hello.session)
        except Exception as error:
            raise RefusalError(
                wire.RefusedReason.OVERLOADED, f"the database cannot be read: {error}", retry=True
            ) from error

    def _take(self, session: Session, frame: Message) -> float:
        """Take a message in; gives the seconds before the next one is to be taken."""
        if self._dismissed.is_set():
            return 0.0
        reception = self._service.reception
        try:
            message = wire.decode_agent(frame)
        except wire.MalformedMessageError as error:
            self._count_malformed(session, error)
        else:
            if isinstance(message, wire.Unknown):
                reception.skip(session, message)
            elif isinstance(message, wire.Hello) and (message.node, message.session) != (session.node, session.session):
                self.dismiss(_malformed("a later hello names another node or session").refused)
            else:
                if isinstance(message, wire.Bye):
                    self._bye_seq = message.seq
                reception.take(session, message, len(frame))
        return self._pace(session, len(frame))

    def _pace(self, session: Session, frame_bytes: int) -> float:
        """Whoever says too much is read more slowly: it waits at its own end."""
        wait_seconds = self._service.roster.charge(session, frame_bytes)
        if wait_seconds > 0 and not self._is_paced:
            self._is_paced = True
            logger.warning("node %s says too much: from now on it is heard slowly", session.node)
        return min(wait_seconds, PACED_SECONDS_MAX)

    def _count_malformed(self, session: Session, error: Exception) -> None:
        self._service.reception.count_malformed(session)
        if session.malformed_total == 1:
            logger.warning("a frame of node %s is malformed, and is skipped: %s", session.node, error)
        self._malformed_here += 1
        if self._malformed_here >= MALFORMED_MAX:
            self.dismiss(_malformed(f"{MALFORMED_MAX} frames could not be read; the last one: {error}").refused)

    # ------------------------------------------------------------ sending

    async def _send_news(self) -> None:
        """Acknowledgements, the newest only; acts that are asked for; and the last word."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self._stored_seq > self._acknowledged_seq:
                self._acknowledged_seq = self._stored_seq
                await self._send(wire.Ack(seq=self._stored_seq))
            while self._requests:
                await self._send(self._requests.popleft())
            if self._bye_seq is not None and self._acknowledged_seq >= self._bye_seq:
                await self._close(NORMAL, "goodbye")
                return
            if self._dismissed.is_set():
                await self._refuse(self._last_word)
                return

    async def _welcome(self, stored_seq: int) -> None:
        await self._send(
            wire.Welcome(
                protocol=wire.PROTOCOL_VERSION,
                server_version=__version__,
                sent_at=self._service.clock(),
                resume_after_seq=stored_seq,
            )
        )

    async def _refuse(self, refused: wire.Refused | None) -> None:
        """Say why, and close; without a reason the agent connects again at once."""
        if refused is None:
            await self._close(TRY_AGAIN_LATER, "connect again")
            return
        await self._send(refused)
        await self._close(TRY_AGAIN_LATER if refused.retry else POLICY_VIOLATION, refused.reason.value)

    async def _close(self, code: int, reason: str) -> None:
        self._dismissed.set()
        self._inbox.close()
        if self._websocket.application_state is WebSocketState.CONNECTED:
            await self._websocket.close(code, reason)

    async def _send(self, message: wire.ServerMessage) -> None:
        await self._websocket.send_text(wire.encode(message).decode())

    def _where(self) -> str:
        client = self._websocket.client
        return f"{client.host}:{client.port}" if client else "somewhere"


def _malformed(detail: str) -> RefusalError:
    return RefusalError(wire.RefusedReason.MALFORMED, detail[:1000], retry=False)


def _token_refused(what: str) -> RefusalError:
    return RefusalError(wire.RefusedReason.TOKEN, f"the token {what}", retry=False)
