"""A running server, as the commands ask it: JSON in, JSON out, and its errors as one sentence."""

import argparse
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from oomwatch.options import SettingError, read_secret
from oomwatch.oserror import with_remedy

T = TypeVar("T")

ASK_SECONDS = 30.0
ERROR_BYTES = 1_000_000


class ServerError(Exception):
    """The server refused, or cannot be reached. The text is a sentence for the person who asked."""


class Answer(msgspec.Struct, frozen=True):
    """What came back: the body and the headers, by lower-case name."""

    body: bytes
    headers: dict[str, str]

    def read_as(self, kind: type[T]) -> T:
        """The body as a value of this type (`dict`, a struct). Raises ServerError where it is none."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerError(f"the server's answer is not understood: {error}; is it an oomwatch server?") from error


class Client:
    """Asks one server, with its reader token where it wants one."""

    def __init__(self, server: str, token: str | None = None) -> None:
        """Raises SettingError where `server` is no http:// or https:// address."""
        if not server.startswith(("http://", "https://")):
            raise SettingError(f'server: "{server}" is no http:// or https:// address')
        self.server = server.rstrip("/")
        self._token = token

    def get(self, path: str, kind: type[T], **query: object) -> T:
        """The answer to GET `path` ("/api/v1/..."), as a value of this type. Raises ServerError."""
        return self.ask("GET", path, query).read_as(kind)

    def post(self, path: str, kind: type[T], content: object = None, **query: object) -> T:
        """The same of POST; `content` is sent as JSON. Raises ServerError."""
        return self.ask("POST", path, query, None if content is None else msgspec.json.encode(content)).read_as(kind)

    def delete(self, path: str, **query: object) -> None:
        """Raises ServerError."""
        self.ask("DELETE", path, query)

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        within_seconds: float = ASK_SECONDS,
    ) -> Answer:
        """Any question; parts of the query that are None are left out. Raises ServerError."""
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        url = f"{self.server}{path}" + (f"?{urlencode(given)}" if given else "")
        told = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {}
        )
        request = urllib.request.Request(url, body, told | dict(headers or {}), method=method)  # noqa: S310 - checked
        try:
            with urllib.request.urlopen(request, timeout=within_seconds) as answer:  # noqa: S310
                return Answer(answer.read(), {name.lower(): value for name, value in answer.headers.items()})
        except urllib.error.HTTPError as error:
            with error:
                raise ServerError(f"{self.server}: {_why(error.read(ERROR_BYTES), error.code)}") from error
        except TimeoutError as error:
            raise ServerError(f"{self.server} did not answer within {within_seconds:g} s") from error
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise ServerError(f"{self.server} cannot be reached: {with_remedy(error)}") from error


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _why(body: bytes, status: int) -> str:
    """The sentence of our own servers' refusals; of any other, its status."""
    try:
        told = msgspec.json.decode(body)
        return str(told["error"])
    except (msgspec.DecodeError, KeyError, TypeError, UnicodeDecodeError):
        return f"it answered with status {status}"


def client_of(options: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> Client | None:
    """The client that flags and environment name; None where they name no server. Raises SettingError."""
    server = options.server or environ.get("OOMWATCH_SERVER")
    return Client(server, _token(options, environ)) if server else None


def _token(options: argparse.Namespace, environ: Mapping[str, str]) -> str | None:
    if options.reader_token:
        return str(options.reader_token)
    path = options.reader_token_file
    if path is None and environ.get("OOMWATCH_READER_TOKEN"):
        return environ["OOMWATCH_READER_TOKEN"]
    path = path or environ.get("OOMWATCH_READER_TOKEN_FILE")
    return read_secret(path, "reader token") if path else None
