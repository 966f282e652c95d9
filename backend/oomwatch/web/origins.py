"""Requests that a page of another origin makes: none may change anything, open a WebSocket, or be told an answer."""

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from oomwatch.web.answers import refusal

READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN = frozenset({"same-origin", "none"})  # "none": a person typed the address, or a program opened it


def objection(connection: HTTPConnection, external: str | None, *, by_browser: bool) -> Response | None:
    """The answer for a page that is not ours. `external`: the host by which people reach a proxy before us.

    Browsers say where a request comes from in two headers that no page can change: Origin, and Sec-Fetch-Site (not by
    http to another host, and not those of before 2023). A program says neither. `by_browser`: who asks
    is known by what a browser sends with every request, whoever's page makes it: a cookie, or what a proxy adds to it.
    """
    headers = connection.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if not _changes(connection):
        # Pages of elsewhere lead people here, and that is all.
        is_foreign = site == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        return refusal(403, "a page of another site may not read this server") if is_foreign else None
    if origin is not None and _netloc(origin) not in {headers.get("host", ""), external} - {"", None}:
        return refusal(403, f"a page of {origin} may not use this server; set --external-url if it should")
    if site is not None and site not in OWN:
        return refusal(403, f"a page that is {site} may not use this server; open it under its own address")
    if by_browser and origin is None and site is None and connection.scope["type"] == "http":
        return refusal(
            403, "a browser says where a request comes from (Origin); a program sends a token in Authorization"
        )
    return None


def is_led_here(connection: HTTPConnection) -> bool:
    """Whether a page of elsewhere made the browser come."""
    return connection.headers.get("sec-fetch-site", "none") not in OWN


def _changes(connection: HTTPConnection) -> bool:
    """A WebSocket changes nothing, but it goes on telling, and no rule of browsers stands in its way."""
    return connection.scope["type"] == "websocket" or connection.scope["method"] not in READING


def _netloc(origin: str) -> str:
    """Host and port of a page's address; empty for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
