"""One POST to a receiver outside, and what its answer means. No address that may be secret leaves this file.

Everything that goes out goes through `client()`: the one place to guard which addresses may be reached.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httpx

from oomwatch import options
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret

TIMEOUT = httpx.Timeout(10.0, connect=5.0)
WHOLE_SECONDS = 20.0  # httpx' limits are per read: a receiver that drips one byte at a time needs one for all of it
ANSWER_BYTES = 2048  # of the answer, enough for Slack's error words
LONGEST_RETRY_AFTER_SECONDS = 3600.0  # a receiver that asks for more would silence us
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


def client() -> httpx.AsyncClient:
    """The client that channels share. Redirects are not followed: they would carry the message to another host."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # at INFO it logs each request with its whole address
    headers = {"User-Agent": "oomwatch", "Accept-Encoding": "identity"}
    return httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, headers=headers)


def check_url(url: Secret, place: str) -> None:
    """Raises SettingError unless it is an http or https address with a host."""
    try:
        parsed = httpx.URL(url.reveal())
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise options.SettingError(
            f"{place}: its address is no http:// or https:// address (not shown: it may be secret)"
        )


def shown(url: Secret) -> str:
    """What may be seen of an address: scheme, host and port."""
    parsed = httpx.URL(url.reveal())
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


async def post(
    http: httpx.AsyncClient,
    url: Secret,
    content: bytes,
    headers: Mapping[str, str],
    *,
    limit_seconds: float = WHOLE_SECONDS,
) -> Outcome:
    """Send JSON once. Never raises for what the network or the receiver does."""
    try:
        return await asyncio.wait_for(_post(http, url, content, headers), limit_seconds)
    except asyncio.TimeoutError:
        return TryAgain(f"{shown(url)} did not answer within {limit_seconds:g} s")
    except httpx.TimeoutException:
        return TryAgain(f"{shown(url)} did not answer in time")
    except httpx.TransportError as error:
        detail = _harmless(str(error), url) or type(error).__name__
        return TryAgain(f"cannot reach {shown(url)}: {detail}")


async def _post(http: httpx.AsyncClient, url: Secret, content: bytes, headers: Mapping[str, str]) -> Outcome:
    all_headers = {"Content-Type": "application/json; charset=utf-8", **headers}
    async with http.stream("POST", url.reveal(), content=content, headers=all_headers) as response:
        answer = await _first_bytes(response)
    return _judge(response, _harmless(answer, url), url)


async def _first_bytes(response: httpx.Response) -> str:
    content = b""
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) >= ANSWER_BYTES:
            break
    return content[:ANSWER_BYTES].decode("utf-8", "replace")


def _judge(response: httpx.Response, answer: str, url: Secret) -> Outcome:
    status = response.status_code
    if response.is_success:
        return Delivered()
    said = f"{shown(url)} answered {status}" + (f": {answer}" if answer else "")
    if status in _AGAIN:
        return TryAgain(said, _retry_after_seconds(response.headers.get("Retry-After"), time.time()))
    if response.is_redirect:
        return Failed(f"{said}. It redirects, which is not followed; give the final address in alerts.yaml")
    return Failed(f"{said}. Check the address and its secret in alerts.yaml")


def _retry_after_seconds(value: str | None, now: float) -> float | None:
    """Of a Retry-After header, which holds seconds or a date (RFC 9110); None where it cannot be read."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isdecimal() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER_SECONDS)


def _harmless(text: str, url: Secret) -> str:
    """A receiver's words as one short line of printable characters, without our address should it echo it."""
    parsed = httpx.URL(url.reveal())
    for part in (url.reveal(), str(parsed), parsed.raw_path.decode("ascii")):
        if len(part) > 1:
            text = text.replace(part, "(secret)")
    line = " ".join(text.split())
    return "".join(char for char in line if char.isprintable())[:200]
