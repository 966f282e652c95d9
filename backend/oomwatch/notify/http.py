"""One request to a receiver outside, and what its answer means. No address that may be secret leaves this file.

Everything that goes out goes through `client()`, whose gate says which addresses may be reached.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx

from oomwatch import options
from oomwatch.notify.gate import PERMIT, AddressRefusedError, Gate, Resolve, resolve
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret
from oomwatch.oserror import with_remedy

TIMEOUT = httpx.Timeout(10.0, connect=5.0)
WHOLE_SECONDS = 20.0  # httpx' limits are per read: a receiver that drips one byte at a time needs one for all of it
ANSWER_SECONDS = 5.0  # for what a receiver says beside the status
JSON = "application/json; charset=utf-8"
ANSWER_BYTES = 2048  # of the answer, enough for Slack's error words
RECEIVER_CHARS, OWN_CHARS = 200, 600  # of what is shown: a receiver's words; ours, which may name a long path
LONGEST_RETRY_AFTER_SECONDS = 3600.0  # a receiver that asks for more would silence us
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class Client(httpx.AsyncClient):
    """The client that channels share. Redirects are not followed: they would carry the message to another host."""

    def __init__(self, resolve: Resolve = resolve, permit: str = PERMIT) -> None:
        for name in ("httpx", "httpcore"):  # they log each request with its whole address, and what was answered
            logging.getLogger(name).setLevel(logging.WARNING)
        self._gate = Gate(resolve, permit)
        headers = {"User-Agent": "oomwatch", "Accept-Encoding": "identity"}
        super().__init__(timeout=TIMEOUT, follow_redirects=False, headers=headers, transport=self._gate)

    def allow_private_addresses(self, allowed: bool) -> None:
        """Whether names may lead to addresses that are none of the Internet."""
        self._gate.allow_private = allowed


def client(permit: str = PERMIT) -> Client:
    """Ready to send; close it when done. `permit` tells people how private addresses may be reached."""
    return Client(permit=permit)


def check_url(url: Secret, place: str) -> None:
    """Raises SettingError unless it is an http or https address with a host."""
    if not is_address(url.reveal()):
        raise options.SettingError(
            f"{place}: its address is no http:// or https:// address (not shown: it may be secret)"
        )


def is_address(text: str) -> bool:
    """Whether it is an http or https address with a host that has a name."""
    try:
        parsed = httpx.URL(text)
        return parsed.scheme in {"http", "https"} and bool(parsed.host)
    except (httpx.InvalidURL, UnicodeError):  # "http://xn--a": no name begins so
        return False


def shown(url: Secret) -> str:
    """What may be seen of an address: scheme, host and port."""
    parsed = httpx.URL(url.reveal())
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


class Answer(NamedTuple):
    """What a receiver said, as far as it was read."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    @property
    def retry_after_seconds(self) -> float | None:
        return retry_after_seconds(self.headers.get("Retry-After"), time.time())


async def post(
    http: httpx.AsyncClient,
    url: Secret,
    content: bytes,
    headers: Mapping[str, str],
    *,
    limit_seconds: float = WHOLE_SECONDS,
    hide: Iterable[Secret] = (),
) -> Outcome:
    """Send JSON once. Never raises for what the network or the receiver does. `hide`: what headers hold of secrets."""
    all_headers = {"Content-Type": JSON, **headers}
    answer = await ask(http, "POST", url, content=content, headers=all_headers, limit_seconds=limit_seconds)
    return judge(answer, url, hide) if isinstance(answer, Answer) else answer


async def ask(
    http: httpx.AsyncClient,
    method: str,
    url: Secret,
    *,
    content: bytes = b"",
    headers: Mapping[str, str],
    limit_seconds: float = WHOLE_SECONDS,
    answer_bytes: int = ANSWER_BYTES,
) -> Answer | TryAgain | Failed:
    """One request, and what was answered or why nothing was. Of the answer no more than `answer_bytes` is read."""
    try:
        request = _ask(http, method, url, content, headers, answer_bytes)
        return await asyncio.wait_for(request, limit_seconds)
    except asyncio.TimeoutError:
        return TryAgain(f"{shown(url)} did not answer within {limit_seconds:g} s")
    except httpx.TimeoutException:
        return TryAgain(f"{shown(url)} did not answer in time")
    except AddressRefusedError as error:
        return Failed(f"nothing is sent to {shown(url)}: {error}")
    except httpx.TransportError as error:
        detail = harmless(with_remedy(error), url, chars=OWN_CHARS)
        return TryAgain(f"cannot reach {shown(url)}: {detail}")


async def _ask(
    http: httpx.AsyncClient, method: str, url: Secret, content: bytes, headers: Mapping[str, str], answer_bytes: int
) -> Answer:
    async with http.stream(method, url.reveal(), content=content, headers=headers) as response:
        read = bytearray()
        # What it decided is told by the status: an answer that breaks off, or never ends, takes nothing back.
        with contextlib.suppress(asyncio.TimeoutError, httpx.TransportError):
            await asyncio.wait_for(_read(response, answer_bytes, read), ANSWER_SECONDS)
    return Answer(response.status_code, response.headers, bytes(read[:answer_bytes]))


async def _read(response: httpx.Response, limit: int, into: bytearray) -> None:
    async for chunk in response.aiter_raw():
        into += chunk
        if len(into) >= limit:
            break


def judge(answer: Answer, url: Secret, hide: Iterable[Secret] = ()) -> Outcome:
    """What a status means for the message."""
    if 200 <= answer.status < 300:  # noqa: PLR2004
        return Delivered()
    words = harmless(answer.text, url, hide)
    said = f"{shown(url)} answered {answer.status}" + (f": {words}" if words else "")
    if answer.status in _AGAIN:
        return TryAgain(said, answer.retry_after_seconds)
    if 300 <= answer.status < 400:  # noqa: PLR2004
        return Failed(f"{said}. It redirects, which is not followed; give the final address in alerts.yaml")
    return Failed(f"{said}. Check the address and its secret in alerts.yaml")


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Of a Retry-After header, which holds seconds or a date (RFC 9110); None where it cannot be read."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isdecimal() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER_SECONDS)


def harmless(text: str, url: Secret, hide: Iterable[Secret] = (), *, chars: int = RECEIVER_CHARS) -> str:
    """A receiver's words as one short line of printable characters, without our secrets should it echo them."""
    parsed = httpx.URL(url.reveal())
    target = parsed.raw_path.decode("ascii")
    known = (url.reveal(), str(parsed), target, target.partition("?")[0], *(secret.reveal() for secret in hide))
    for part in known:
        if len(part) > 1:
            text = text.replace(part, "(secret)")
    line = " ".join(text.split())
    return "".join(char for char in line if char.isprintable())[:chars]
