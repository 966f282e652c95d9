"""Who may look and who may act: tokens, sessions, the address that was asked for, and whose page asks.

Whoever acts is noted in the audit log, with what became of it.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from oomwatch.access.audit import AuditLog, deed
from oomwatch.access.keyring import Keyring
from oomwatch.access.person import is_session_text
from oomwatch.access.proxied import ProxyHeader, UnknownPersonError
from oomwatch.access.token import Token
from oomwatch.settings import LOOPBACK, Settings, address_of
from oomwatch.web import origins
from oomwatch.web.answers import refusal
from oomwatch.web.cookies import TOKEN, Jar
from oomwatch.web.live import LIVE_PATH, NOT_KNOWN, NOT_KNOWN_WORDS
from oomwatch.web.origins import READING
from oomwatch.web.policy import transport_headers, with_headers
from oomwatch.web.signin import SIGN_OUT, SignIn
from oomwatch.web.signin import address_of as client_of
from oomwatch.web.signinpage import LED_HERE, WRONG_TOKEN

AGENT_PATH = "/ws/agent"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})  # whether the server lives is no secret
# Questions that come with a body, and change nothing. Who signs in or out is noted by itself.
ASKING = frozenset({"/api/v1/doctor", "/api/v1/rules/try", "/api/v1/silences/preview", SIGN_OUT})
UNKNOWN = 401


class Access(NamedTuple):
    """What the guard works with. `clock` gives Unix seconds; `seek` finds a session that another server began,
    by its text and the address that shows it."""

    keyring: Keyring
    audit: AuditLog
    sign_in: SignIn
    header: ProxyHeader | None
    clock: Callable[[], float]
    is_https: Callable[[HTTPConnection], bool]
    seek: Callable[[str, str], Awaitable[Token | None]] | None = None


class Shown(NamedTuple):
    """Who a request is of: the token, and why the proxy's word was of no use.

    `by_browser`: a browser shows it by itself, by a cookie or to a proxy that vouches, whoever's page makes it ask.
    """

    token: Token | None
    by_browser: bool = False
    problem: str | None = None


class Guard:
    """An ASGI middleware around everything. It costs nothing per WebSocket frame.

    The token that let a connection in is `scope["state"]["token"]`; it is None where none is asked for.
    """

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self._app = app
        self._access = access
        self._keyring = access.keyring
        self._hosts = _allowed_hosts(settings)
        self._external = urlsplit(settings.external_url or "").netloc or None  # a proxy may give its own Host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        shown = await self._shown_by(connection)
        scope.setdefault("state", {})["token"] = shown.token
        is_sign_in = scope["type"] == "http" and self._access.sign_in.is_ours(connection)
        answer = self._objection(connection, shown, is_sign_in=is_sign_in)
        if answer is None and is_sign_in:
            answer = await self._access.sign_in.answer(Request(scope, receive))
        if answer is None:
            await self._app(scope, receive, self._watched(connection, shown.token, send))
        elif scope["type"] == "http":
            await answer(scope, receive, self._watched(connection, shown.token, send))
        else:
            await _turn_away(WebSocket(scope, receive, send), answer)

    async def _shown_by(self, connection: HTTPConnection) -> Shown:
        """The first good token that the connection shows: in a header of its own, by a proxy, in a cookie."""
        kind, _, given = connection.headers.get("authorization", "").partition(" ")
        token = self._keyring.find(given) if kind.lower() == "bearer" else None
        if token is not None:
            return Shown(token)
        if self._access.header is not None:
            try:
                token = self._access.header.token(connection.scope["state"]["peer"], connection.headers.getlist)
            except UnknownPersonError as error:
                return Shown(None, problem=str(error))
            if token is not None:
                return Shown(token, by_browser=True)
        texts = list(Jar(connection.headers, is_https=self._access.is_https(connection)).values(TOKEN))
        token = next((token for text in texts if (token := self._keyring.find(text))), None)
        if token is None and self._access.seek is not None:
            for text in filter(is_session_text, texts[:1]):
                token = await self._access.seek(text, client_of(connection))
        return Shown(token, by_browser=token is not None)

    def _objection(self, connection: HTTPConnection, shown: Shown, *, is_sign_in: bool) -> Response | None:
        """The answer for whoever may not go on."""
        path = connection.scope["path"]
        if path in OPEN_PATHS:
            return None
        host = connection.headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            # A page from elsewhere can make its own name point here (DNS rebinding), and would be let in.
            return refusal(403, f'this server is not known as "{_name(host)}"; set --external-url if it should be')
        if path == AGENT_PATH:
            # Agents have tokens of their own, and send no Origin: whoever does is a page in a browser.
            origin = connection.headers.get("origin", connection.headers.get("sec-fetch-site"))
            return None if origin is None else refusal(403, f"a page of {origin} is no agent")
        foreign = origins.objection(connection, self._external, by_browser=shown.by_browser)
        return foreign if foreign is not None or is_sign_in else self._demand(connection, shown)

    def _demand(self, connection: HTTPConnection, shown: Shown) -> Response | None:
        """What is asked of whoever shows no token that suffices."""
        if shown.problem is not None:
            return refusal(403, shown.problem)
        role = shown.token.role if shown.token is not None else None
        if _acts(connection) and self._keyring.asks_for("operator"):
            if role == "operator":
                return None
            if role == "reader" or not self._keyring.asks_for("reader"):
                return refusal(403, "this needs an operator's token; yours lets you look, and no more")
        elif role in {"reader", "operator"} or not self._keyring.asks_for("reader"):
            return None
        return self._ask_for_token(connection)

    def _ask_for_token(self, connection: HTTPConnection) -> Response:
        query = parse_qs(connection.url.query)
        given = query.pop("token", [""])[0]
        is_led_here = bool(given) and origins.is_led_here(connection)
        token = self._reading(given)
        if connection.scope["type"] == "http" and token is not None and not is_led_here:
            # Keep the token in a cookie, and take it out of the address, which gets copied and logged.
            rest = urlencode(query, doseq=True)
            address = "/" + connection.scope["path"].lstrip("/") + (f"?{rest}" if rest else "")  # "//x" is another host
            return self._access.sign_in.let_in_by_token(connection, address, given, token)
        if connection.scope["type"] == "http" and _wants_page(connection):
            note = LED_HERE if is_led_here else WRONG_TOKEN
            return self._access.sign_in.page(connection, note if given else None)
        return refusal(
            UNKNOWN, "this server asks for a token: open it once with ?token=..., or send Authorization: Bearer ..."
        )

    def _reading(self, text: str) -> Token | None:
        """The token of a person or a program that looks."""
        token = self._keyring.find(text)
        return None if token is None or token.role == "agent" or is_session_text(text) else token

    def _watched(self, connection: HTTPConnection, token: Token | None, send: Send) -> Send:
        """Puts the headers on the answer, and notes what was done."""
        if connection.scope["type"] != "http":
            return send
        host = connection.headers.get("host", "")
        more = transport_headers(host, is_https=self._access.is_https(connection))
        if not _acts(connection) or self._access.sign_in.is_ours(connection):
            return with_headers(send, more)

        async def send_and_note(message: Message) -> None:
            is_answer = message["type"] == "http.response.start"
            # Whoever shows no token where one is asked for did nothing: strangers must not crowd the log.
            if is_answer and not (token is None and message["status"] in {401, 403}):
                who, role = (token.name, token.role) if token is not None else ("anyone", "none")
                request = (connection.scope["method"], connection.scope["path"])
                made = deed(self._access.clock(), who, role, client_of(connection), request, message["status"])
                self._access.audit.add(made)
            await send(message)

        return with_headers(send_and_note, more)


async def _turn_away(websocket: WebSocket, answer: Response) -> None:
    """A browser does not tell its page with what status a WebSocket was refused, but by what code it was closed."""
    is_page = websocket.scope["path"] == LIVE_PATH and "origin" in websocket.headers
    if answer.status_code == UNKNOWN and is_page:
        await websocket.accept()
        await websocket.close(NOT_KNOWN, NOT_KNOWN_WORDS)
    else:
        await websocket.send_denial_response(answer)


def _acts(connection: HTTPConnection) -> bool:
    """Whether the request changes something. What comes in by a WebSocket of the page changes nothing."""
    return (
        connection.scope["type"] == "http"
        and connection.scope["method"] not in READING
        and connection.scope["path"] not in ASKING
    )


def _wants_page(connection: HTTPConnection) -> bool:
    """Whether a person looks, with a browser, for the page."""
    return connection.scope["path"] == "/" and "text/html" in connection.headers.get("accept", "")


def _allowed_hosts(settings: Settings) -> frozenset[str] | None:
    """The names under which a server that only listens on loopback may be asked; None: any."""
    if not address_of(settings).is_loopback:
        return None
    external = urlsplit(settings.external_url).hostname if settings.external_url else None
    return frozenset({*LOOPBACK, *([external] if external else [])})


def _name(host: str) -> str:
    """The host without its port; empty for what is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
