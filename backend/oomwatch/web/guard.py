"""Who may read: the reader's token, the address that was asked for, and the headers that every answer carries."""

import hmac
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from oomwatch.settings import LOOPBACK, Settings, address_of
from oomwatch.web.answers import refusal

COOKIE = "oomwatch_token"
COOKIE_SECONDS = 30 * 86400
AGENT_PATH = "/ws/agent"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})  # whether the server lives is no secret
READING = frozenset({"GET", "HEAD", "OPTIONS"})

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


class Guard:
    """An ASGI middleware around everything. It costs nothing per WebSocket frame."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._token = settings.reader_token
        self._hosts = _allowed_hosts(settings)
        self._external = urlsplit(settings.external_url or "").netloc or None  # a proxy may give its own Host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        answer = self._objection(connection)
        if answer is None:
            await self._app(scope, receive, with_headers(send) if scope["type"] == "http" else send)
        elif scope["type"] == "http":
            await answer(scope, receive, with_headers(send))
        else:
            await WebSocket(scope, receive, send).send_denial_response(answer)

    def _objection(self, connection: HTTPConnection) -> Response | None:
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
            # Agents have a token of their own, and send no Origin: whoever does is a page in a browser.
            return None if origin is None else refusal(403, f"a page of {origin} is no agent")
        is_guarded = kind == "websocket" or connection.scope["method"] not in READING
        if is_guarded and origin and _netloc(origin) not in {host, self._external} - {"", None}:
            return refusal(403, f"a page of {origin} may not use this server; set --external-url if it should")
        return None if self._token is None else self._ask_for_token(connection, self._token)

    def _ask_for_token(self, connection: HTTPConnection, token: str) -> Response | None:
        headers = connection.headers
        if _same(headers.get("authorization", ""), f"Bearer {token}"):
            return None
        if any(_same(value, token) for value in _cookies(headers)):
            return None
        query = parse_qs(connection.url.query)
        if connection.scope["type"] == "http" and _same(query.pop("token", [""])[0], token):
            return _remember(connection, query, token)
        return refusal(
            401, "this server asks for a token: open it once with ?token=..., or send Authorization: Bearer ..."
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


def _remember(connection: HTTPConnection, query: dict[str, list[str]], token: str) -> Response:
    """Keep the token in a cookie, and take it out of the address, which gets copied and logged."""
    rest = urlencode(query, doseq=True)
    answer = RedirectResponse(connection.scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
    secure = connection.scope["scheme"] == "https"
    answer.set_cookie(
        COOKIE, quote(token, safe=""), max_age=COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure
    )
    return answer


def _same(given: str, expected: str) -> bool:
    """In constant time: how much of a guess is right must not show."""
    return hmac.compare_digest(given.encode(), expected.encode())


def with_headers(send: Send) -> Send:
    """Puts the headers that keep the page safe on every answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
