"""Our cookies: no script and no other site sees them, and under https no other program of the domain can set them."""

from collections.abc import Iterator
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.responses import Response

# Under this prefix browsers take a cookie only from this very host, by https, for all its paths.
HOST_PREFIX = "__Host-"
TOKEN, FORM, TRIP = "oomwatch_token", "oomwatch_form", "oomwatch_trip"


class Jar:
    """The cookies of one request. `is_https`: people come by https, maybe to a proxy."""

    def __init__(self, headers: Headers, *, is_https: bool) -> None:
        self._headers = headers
        self._is_https = is_https

    def values(self, name: str) -> Iterator[str]:
        """By hand: the standard library's reader gives up at the first odd cookie of another program on this host.

        There may be several: cookies know no ports, so another oomwatch on this host has one of the same name.
        """
        wanted = self._full(name)
        for header in self._headers.getlist("cookie"):
            for part in header.split(";"):
                found, _, value = part.strip().partition("=")
                if found == wanted:
                    yield unquote(value)

    def value(self, name: str) -> str | None:
        """The first one."""
        return next(self.values(name), None)

    def keep(self, answer: Response, name: str, value: str, seconds: int | None) -> None:
        """Have the browser keep it, for so long or until it is closed.

        Lax: a link in a message leads to the page and not to signing in again. What changes something is asked for its
        origin besides (origins.py).
        """
        answer.set_cookie(
            self._full(name),
            quote(value, safe=""),
            max_age=seconds,
            httponly=True,
            samesite="lax",
            secure=self._is_https,
        )

    def drop(self, answer: Response, name: str) -> None:
        """Have the browser forget it."""
        answer.delete_cookie(self._full(name), httponly=True, samesite="lax", secure=self._is_https)

    def _full(self, name: str) -> str:
        return HOST_PREFIX + name if self._is_https else name
