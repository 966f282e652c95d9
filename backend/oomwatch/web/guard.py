"""Who may look and who may act: tokens, the address that was asked for, and the headers that every answer carries.

Whoever acts is noted in the audit log, with what became of it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from oomwatch.access.audit import AuditLog, deed
from oomwatch.access.keyring import Keyring
from oomwatch.access.token import Token
from oomwatch.settings import LOOPBACK, Settings, address_of
from oomwatch.web.answers import RefusedError, refusal, refused
from oomwatch.web.signin import COOKIE, SIGN_IN, SIGN_OUT, remember, sign_in_page, token_in_form, wants_page

AGENT_PATH = "/ws/agent"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})  # whether the server lives is no secret
READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Questions that come with a body, and change nothing.
ASKING = frozenset({"/api/v1/doctor", "/api/v1/rules/try", "/api/v1/silences/preview", SIGN_OUT})

# Plotly writes style attributes of all kinds, so these cannot be forbidden: each styles its own element and no other.
# Style sheets come from here alone, but for two of Plotly's: an empty one, which it fills by calls, and MapLibre's.
PLOTLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"
)

SECURITY_HEADERS = {
    # "style-src" is for browsers of before 2023, which do not know the two that follow. Images are exported charts.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        f"style-src-elem 'self' {PLOTLY_STYLES}; style-src-attr 'unsafe-inline'; "
        "connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Access(NamedTuple):
    """What the guard works with. `clock` gives Unix seconds."""

    keyring: Keyring
    audit: AuditLog
    clock: Callable[[], float]


class Guard:
    """An ASGI middleware around everything. It costs nothing per WebSocket frame.

    The token that let a connection in is `scope["state"]["token"]`; it is None where none is asked for.
    """

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self._app = app
        self._keyring, self._audit, self._clock = access
        self._hosts = _allowed_hosts(settings)
        self._is_https = (settings.external_url or "").startswith("https:")
        self._external = urlsplit(settings.external_url or "").netloc or None  # a proxy may give its own Host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        token = self._token_of(connection)
        scope.setdefault("state", {})["token"] = token
        answer = self._objection(connection, token)
        if answer is None and scope["path"] == SIGN_IN and scope["type"] == "http":
            answer = await self._sign_in(Request(scope, receive))
        if answer is None:
            await self._app(scope, receive, self._watched(connection, token, send))
        elif scope["type"] == "http":
            await answer(scope, receive, self._watched(connection, token, send))
        else:
            await WebSocket(scope, receive, send).send_denial_response(answer)

    def _token_of(self, connection: HTTPConnection) -> Token | None:
        """The first good token that the connection shows, in its headers or cookies."""
        headers = connection.headers
        kind, _, given = headers.get("authorization", "").partition(" ")
        shown = [given] if kind.lower() == "bearer" else []
        return next((token for text in (*shown, *_cookies(headers)) if (token := self._keyring.find(text))), None)

    def _objection(self, connection: HTTPConnection, token: Token | None) -> Response | None:
        """The answer for whoever may not go on."""
        path, kind = connection.scope["path"], connection.scope["type"]
        if path in OPEN_PATHS:
            return None
        host = connection.headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            # A page from elsewhere can make its own name point here (DNS rebinding), and would be let in.
            return refusal(403, f'this server is not known as "{_name(host)}"; set --external-url if it should be')
        origin = connection.headers.get("origin")
        if path == AGENT_PATH:
            # Agents have tokens of their own, and send no Origin: whoever does is a page in a browser.
            return None if origin is None else refusal(403, f"a page of {origin} is no agent")
        is_guarded = kind == "websocket" or connection.scope["method"] not in READING
        if is_guarded and origin and _netloc(origin) not in {host, self._external} - {"", None}:
            return refusal(403, f"a page of {origin} may not use this server; set --external-url if it should")
        return None if path == SIGN_IN else self._demand(connection, token)

    def _demand(self, connection: HTTPConnection, token: Token | None) -> Response | None:
        """What is asked of whoever shows no token that suffices."""
        role = token.role if token is not None else None
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
        if connection.scope["type"] == "http" and self._is_reading(given):
            # Keep the token in a cookie, and take it out of the address, which gets copied and logged.
            rest = urlencode(query, doseq=True)
            address = "/" + connection.scope["path"].lstrip("/") + (f"?{rest}" if rest else "")  # "//x" is another host
            return remember(RedirectResponse(address, status_code=303), connection, given, secure=self._is_https)
        if connection.scope["type"] == "http" and wants_page(connection):
            return sign_in_page(wrong=bool(given))
        return refusal(
            401, "this server asks for a token: open it once with ?token=..., or send Authorization: Bearer ..."
        )

    async def _sign_in(self, request: Request) -> Response:
        if request.method != "POST":
            return sign_in_page()
        try:
            given = await token_in_form(request)
        except RefusedError as error:
            return await refused(request, error)
        if not self._is_reading(given):
            return sign_in_page(wrong=True)
        return remember(RedirectResponse("/", status_code=303), request, given, secure=self._is_https)

    def _is_reading(self, text: str) -> bool:
        token = self._keyring.find(text)
        return token is not None and token.role != "agent"

    def _watched(self, connection: HTTPConnection, token: Token | None, send: Send) -> Send:
        """Puts the headers on the answer, and notes what was done."""
        if connection.scope["type"] != "http":
            return send
        if not _acts(connection):
            return with_headers(send)

        async def send_and_note(message: Message) -> None:
            is_answer = message["type"] == "http.response.start"
            # Whoever shows no token where one is asked for did nothing: strangers must not crowd the log.
            if is_answer and not (token is None and message["status"] in {401, 403}):
                who, role = (token.name, token.role) if token is not None else ("anyone", "none")
                client = connection.client.host if connection.client is not None else ""
                request = (connection.scope["method"], connection.scope["path"])
                self._audit.add(deed(self._clock(), who, role, client, request, message["status"]))
            await send(message)

        return with_headers(send_and_note)


def _acts(connection: HTTPConnection) -> bool:
    """Whether the request changes something. What comes in by a WebSocket of the page changes nothing."""
    return (
        connection.scope["type"] == "http"
        and connection.scope["method"] not in READING
        and connection.scope["path"] not in ASKING
    )


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
    except ValueError:  # "[": no IPv6 address
        return ""


def _netloc(origin: str) -> str:
    """Host and port of a page's address; empty for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _cookies(headers: Headers) -> Iterator[str]:
    """Ours, by hand: the standard library's reader gives up at the first odd cookie of another program on this host.

    There may be several: cookies know no ports, so another oomwatch on this host has one of the same name.
    """
    for header in headers.getlist("cookie"):
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE:
                yield unquote(value)


def with_headers(send: Send) -> Send:
    """Puts the headers that keep the page safe on every answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
