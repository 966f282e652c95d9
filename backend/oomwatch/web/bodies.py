"""What programs and people send as JSON, read by msgspec as the rest of the wire is."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from oomwatch.web.answers import RefusedError, content_of

T = TypeVar("T")
BODY_BYTES_MAX = 65_536


async def body_of(request: Request, kind: type[T], bytes_max: int = BODY_BYTES_MAX) -> T:
    """The request's body as a value of this type. Raises RefusedError."""
    content = await content_of(request, bytes_max)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(400, f"the request is not understood: {error}") from error


def takes(kind: object) -> dict[str, Any]:
    """`openapi_extra` of a route with such a body."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    whole = components.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": whole}}}}
