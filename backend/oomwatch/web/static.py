"""The page and its one vendored library."""

import asyncio
import functools
import gzip
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from oomwatch_frontend import STATIC

# The browser asks each time whether a file has changed, so that an upgrade shows at once; it rarely has.
ASK_AGAIN = {"Cache-Control": "no-cache"}
PLOTLY_LEVEL = 6  # 4.8 MB become 1.4 MB, which tells through an SSH tunnel


class PageFiles(StaticFiles):
    """The folder of the page, which is a Python package too: its code is none of the page's."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path.endswith((".py", ".pyc", ".typed")):
            return Response("Not Found", status_code=404)
        response = await super().get_response(path, scope)
        response.headers.update(ASK_AGAIN)
        return response


async def page(_: Request) -> Response:
    """/"""
    return FileResponse(STATIC / "index.html", headers=ASK_AGAIN)


class Script(NamedTuple):
    gzipped: bytes
    tag: str


async def plotly(request: Request) -> Response:
    """/vendor/plotly.min.js, as the plotly package ships it."""
    script = await asyncio.to_thread(_plotly)
    headers = {"ETag": script.tag, "Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == script.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(script.gzipped, media_type="text/javascript", headers=headers)
    return Response(gzip.decompress(script.gzipped), media_type="text/javascript", headers=headers)


@functools.cache
def _plotly() -> Script:
    # The package itself is not imported: that takes seconds and 100 MiB.
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise RuntimeError("the plotly package is missing; install oomwatch[server]")
    text = (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_bytes()
    return Script(gzip.compress(text, PLOTLY_LEVEL), f'"plotly-{version("plotly")}"')
