"""Answers in JSON, encoded by msgspec as the rest of the wire is."""

import msgspec
from starlette.responses import Response

_encoder = msgspec.json.Encoder()


def answer(content: object, status: int = 200) -> Response:
    """Any value that msgspec knows."""
    return Response(_encoder.encode(content), status, media_type="application/json")


def refusal(status: int, sentence: str) -> Response:
    """What was wrong, for the person who asked."""
    return answer({"error": sentence}, status)
