"""One connection to the server: open, greet, send, receive, close. Every failure is a LinkError with a sentence."""

import asyncio
import contextlib
import inspect
import ssl
from collections.abc import Iterator

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.protocol import State

from oomwatch import wire
from oomwatch.oserror import in_words, is_incomplete, with_remedy
from oomwatch_agent.credentials import Credentials, CredentialsError

HELLO_ANSWER_SECONDS = 10.0
PING_SECONDS = 20.0  # the protocol's
CLOSE_SECONDS = 1.0

_FINAL_STATUS = {
    401: "the token is missing or wrong; set --token or OOMWATCH_TOKEN",
    403: "access is forbidden; is the token right, and may this machine pass the proxy?",
    404: "there is no /ws/agent; is it an oomwatch server?",
}
_REMEDY = {
    wire.RefusedReason.TOKEN: "set --token, --token-file or OOMWATCH_TOKEN to the server's token for agents",
    wire.RefusedReason.PROTOCOL: "install the same version of oomwatch on both sides",
    wire.RefusedReason.NODE_TAKEN: "if two agents share the name, give one another --node",
}


class LinkError(Exception):
    """The connection cannot be had, or is lost. The text names the server; `retry`: whether to try again soon."""

    def __init__(self, sentence: str, *, retry: bool = True) -> None:
        super().__init__(sentence)
        self.retry = retry


class Link:
    """An open connection. Close it, whatever happens."""

    def __init__(self, url: str, connection: ClientConnection) -> None:
        self._url = url
        self._connection = connection

    @classmethod
    async def open(cls, url: str, credentials: Credentials) -> "Link":
        try:
            options = credentials.options(url)
        except CredentialsError as error:
            raise LinkError(str(error), retry=False) from error
        if "proxy" in inspect.signature(connect.__init__).parameters:  # websockets 15 and later
            # A proxy set for downloads from the internet is no way to a server inside the cluster.
            options["proxy"] = None
        with _as_link_error(url):
            return cls(
                url,
                await connect(
                    url,
                    compression=None,  # costs more CPU and memory than the whole rest of the agent
                    ping_interval=PING_SECONDS,
                    ping_timeout=PING_SECONDS,
                    close_timeout=CLOSE_SECONDS,
                    **options,
                ),
            )

    async def greet(self, hello: wire.Hello) -> wire.Welcome:
        """Say hello and be welcomed."""
        await self.send(wire.encode(hello))
        try:
            answer = await asyncio.wait_for(self.receive(), HELLO_ANSWER_SECONDS)
        except asyncio.TimeoutError:
            raise LinkError(f"{self._url} does not answer hello; is it an oomwatch server?") from None
        if not isinstance(answer, wire.Welcome):
            raise LinkError(f"{self._url} answers hello with {_brief(answer)}; is it an oomwatch server?", retry=False)
        return answer

    async def send(self, text: bytes) -> None:
        with _as_link_error(self._url):
            await self._connection.send(text.decode())

    def post(self, text: bytes) -> bool:
        """Send without waiting, in fewer steps than `send`. False: not now, `send` has to wait or to say why."""
        connection = self._connection
        if connection.protocol.state is not State.OPEN or self._has_unsent():
            return False
        connection.protocol.send_text(text)
        for part in connection.protocol.data_to_send():
            connection.transport.write(part)
        return True

    def _has_unsent(self) -> bool:
        try:
            return self._connection.transport.get_write_buffer_size() > 0
        except AttributeError:  # as Python 3.10 has it with TLS, in the moment in which a connection is lost
            return True

    async def receive(self) -> wire.ServerMessage | wire.Unknown:
        """The next message. What is none of this protocol comes as Unknown; a refusal is a LinkError."""
        with _as_link_error(self._url):
            frame = await self._connection.recv()
        try:
            message = wire.decode_server(frame)
        except wire.MalformedMessageError:
            return wire.Unknown(type="(unreadable)")
        if isinstance(message, wire.Refused):
            raise _refusal(self._url, message)
        return message

    async def close(self) -> None:
        """In two seconds at most. Where the other side reads nothing, websockets would wait to write its farewell."""
        try:
            await asyncio.wait_for(self._connection.close(), 2 * CLOSE_SECONDS)
        except asyncio.TimeoutError:
            self._connection.transport.abort()


@contextlib.contextmanager
def _as_link_error(url: str) -> Iterator[None]:
    try:
        yield
    except ConnectionClosed as error:
        why = error.rcvd.reason if error.rcvd is not None and error.rcvd.reason else "no reason given"
        raise LinkError(f"lost the connection to {url}: {why}") from error
    except InvalidStatus as error:
        status = error.response.status_code
        sentence = _FINAL_STATUS.get(status, f"it answers with HTTP status {status}")
        raise LinkError(f"cannot connect to {url}: {sentence}", retry=status not in _FINAL_STATUS) from error
    except InvalidHandshake as error:
        said = _unanswered(url, error) or "it speaks no WebSocket; is it an oomwatch server?"
        raise LinkError(f"cannot connect to {url}: {said}") from error
    except (asyncio.TimeoutError, TimeoutError) as error:
        raise LinkError(
            f"cannot reach {url}: no answer in time; is the address right, is a firewall between?"
        ) from error
    except ssl.SSLError as error:
        remedy = _tls_remedy(error)
        said = f"{in_words(error)}; {remedy}" if remedy else with_remedy(error)
        raise LinkError(f"cannot connect to {url}: {said}") from error
    except (OSError, EOFError) as error:
        raise LinkError(f"cannot reach {url}: {_unanswered(url, error) or with_remedy(error)}") from error


def _unanswered(url: str, error: BaseException) -> str | None:
    """Where the other side closed the connection before a line of HTTP. How websockets says that differs by version.

    A proxy before a server that is down does so, and a server of TLS that is spoken to in plain HTTP.
    """
    if not isinstance(error.__cause__, EOFError) and type(error) not in (EOFError, ConnectionError):
        return None
    more = ", and does it want wss://?" if url.startswith("ws:") else "?"
    return f"it closed the connection without an answer; is the server up behind it{more}"


def _tls_remedy(error: ssl.SSLError) -> str | None:
    if getattr(error, "verify_message", None) and not is_incomplete(error):
        return "name the authority that signed it with --tls-ca"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "write ws:// in place of wss:// in --server, or give the server --tls-cert"
    return None


def _brief(message: object) -> str:
    return f'"{message.type}"' if isinstance(message, wire.Unknown) else f'"{type(message).__name__.lower()}"'


def _refusal(url: str, refused: wire.Refused) -> LinkError:
    remedy = _REMEDY.get(refused.reason)
    sentence = f"{url} refuses this agent ({refused.reason.value}): {refused.detail}"
    return LinkError(f"{sentence}; {remedy}" if remedy else sentence, retry=refused.retry)
