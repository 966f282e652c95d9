"""Getting an engine's metrics page over HTTP, with bounds on time and size: what answers may be anything."""

import http.client
import socket
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from oomwatch.oserror import in_words

MAX_PAGE_BYTES = 4 * 1024**2  # vLLM's page, with its histograms, has about 0.1 MiB for each replica
_CHUNK_BYTES = 64 * 1024
_METRICS_PATH = "/metrics"


class EngineUnreachableError(Exception):
    """There is no page to be had. The text says why, and what a person can do."""


class Endpoint(NamedTuple):
    """Where a page of metrics is."""

    host: str
    port: int
    path: str = _METRICS_PATH

    @property
    def address(self) -> str:
        """host:port, as people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint(text: str) -> Endpoint:
    """HOST:PORT or http://HOST:PORT[/path]; a ValueError says what would be right."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    example = "write for example http://127.0.0.1:8000/metrics or HOST:PORT"
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or not parts.hostname or not port or parts.username or parts.fragment:
        raise ValueError(f'"{text}" is no address of an engine\'s metrics; {example}')
    path = parts.path if parts.path not in ("", "/") else _METRICS_PATH
    return Endpoint(parts.hostname, port, f"{path}?{parts.query}" if parts.query else path)


def fetch(place: Endpoint, limit_seconds: float) -> str:
    """The page. Raises EngineUnreachableError. Redirects are not followed: they could lead off this node."""
    deadline = time.monotonic() + limit_seconds
    connection = http.client.HTTPConnection(place.host, place.port, timeout=limit_seconds)
    try:
        connection.request("GET", place.path, headers={"Accept": "text/plain;version=0.0.4", "Connection": "close"})
        channel = connection.sock
        with connection.getresponse() as response:
            if response.status != http.client.OK:
                raise EngineUnreachableError(_refusal(response))
            return _body(response, channel, deadline).decode("utf-8", "replace")
    except TimeoutError as error:
        raise EngineUnreachableError(f"no whole answer within {limit_seconds:g} s") from error
    except ConnectionRefusedError as error:
        raise EngineUnreachableError("nothing listens there") from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise EngineUnreachableError(f"no HTTP answer ({in_words(error)})"[:300]) from error
    finally:
        connection.close()


def _refusal(response: http.client.HTTPResponse) -> str:
    if response.status == http.client.NOT_FOUND:
        return "404, no metrics there: SGLang needs --enable-metrics, vLLM must not have --disable-log-stats"
    if location := response.headers.get("Location"):
        return f"{response.status}, it redirects to {location[:200]}, which is not followed: name that address"
    return f"{response.status} {response.reason}"[:200]


def _body(response: http.client.HTTPResponse, channel: socket.socket, deadline: float) -> bytes:
    """All of it, within the deadline and MAX_PAGE_BYTES."""
    length = response.length  # as it was told: some releases of Python count it down in read1, others do not
    body = bytearray()
    while length is None or len(body) < length:
        left_seconds = deadline - time.monotonic()
        if left_seconds <= 0:
            raise TimeoutError
        channel.settimeout(left_seconds)
        chunk = response.read1(_CHUNK_BYTES)
        if not chunk and length is not None:
            raise EngineUnreachableError("its answer breaks off")
        if not chunk:
            break
        body += chunk
        if len(body) > MAX_PAGE_BYTES:
            raise EngineUnreachableError(f"its page is longer than {MAX_PAGE_BYTES >> 20} MiB")
    return bytes(body)
