"""What programs and people send as JSON, read by msgspec as the rest of the wire is."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from oomwatch.web.answers import refusal

T = TypeVar("T")
BODY_BYTES_MAX = 65_536


class BadBodyError(Exception):
    """The request cannot be understood. The text is the answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def body_of(request: Request, kind: type[T]) -> T:
    """The request's body as a value of this type. Raises BadBodyError."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > BODY_BYTES_MAX:
            raise BadBodyError(413, f"the request is longer than {BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBodyError(400, f"the request is not understood: {error}") from error


def takes(kind: object) -> dict[str, Any]:
    """`openapi_extra` of a route with such a body."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    whole = components.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": whole}}}}


async def bad_body(_: Request, error: Exception) -> Response:
    """The answer to what cannot be understood."""
    return refusal(error.status if isinstance(error, BadBodyError) else 400, str(error))
