"""Answers in JSON, encoded by msgspec as the rest of the wire is."""

import asyncio
from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

BODY_SECONDS = 30.0

_encoder = msgspec.json.Encoder()


def answer(content: object, status: int = 200) -> Response:
    """Any value that msgspec knows."""
    return Response(_encoder.encode(content), status, media_type="application/json")


def refusal(status: int, sentence: str) -> Response:
    """What was wrong, for the person who asked."""
    return answer({"error": sentence}, status)


class RefusedError(Exception):
    """The answer to a request is another status, with a sentence; `mistakes` say more where a file was sent."""

    def __init__(self, status: int, sentence: str, mistakes: Sequence[object] = ()) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.mistakes = tuple(mistakes)


async def refused(_: Request, error: Exception) -> Response:
    """The answer to a RefusedError."""
    if not isinstance(error, RefusedError):
        raise error
    content: dict[str, object] = {"error": error.sentence}
    return answer(content | ({"mistakes": error.mistakes} if error.mistakes else {}), error.status)


async def content_of(
    request: Request, bytes_max: int, what: str = "the request is", *, within_seconds: float = BODY_SECONDS
) -> bytes:
    """The request's body, of which no more than so much is ever in memory. Raises RefusedError."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(415, f"{what} packed: send it as it is")
    try:
        return await asyncio.wait_for(_content(request, bytes_max, what), within_seconds)
    except asyncio.TimeoutError:
        raise RefusedError(408, f"{what} not whole after {within_seconds:g} s") from None


async def _content(request: Request, bytes_max: int, what: str) -> bytes:
    parts, length = [], 0
    async for part in request.stream():
        parts.append(part)
        length += len(part)
        if length > bytes_max:
            raise RefusedError(413, f"{what} longer than {bytes_max} bytes")
    return b"".join(parts)
