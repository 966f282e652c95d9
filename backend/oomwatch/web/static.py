"""The page's files, out of memory: read once, compressed once, and kept by browsers for as long as they are the same.

The page at / names its files by addresses that bear a mark of what they hold: /static/MARK/js/main.js. What such an
address leads to never changes, so a browser asks for it once. Without a mark, and under that of an older version, it is
there too, and the browser asks each time whether it has changed. The scripts come in three files (bundle.py).
"""

import asyncio
import gzip
import hashlib
import mimetypes
import stat
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from oomwatch.web.bundle import bundled

ASK_AGAIN = "no-cache"
FOR_EVER = "public, max-age=31536000, immutable"
SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".txt"})  # the folder is a Python package too: no code of it
PAGE = "index.html"
SCRIPTS = ("js/live.js", "js/main.js")  # those that the page names
LEVEL = 6  # of gzip: plotly's 4.8 MB become 1.4 MB, which tells through an SSH tunnel
PLOTLY = "vendor/plotly.min.js"  # the page's one library, as the plotly package ships it
SCRIPT = "text/javascript"
MARK_LENGTH = 12  # hexadecimal digits

# A path, when it was last changed (ns) and its size: what tells that a file is another one.
Stamps = tuple[tuple[str, int, int], ...]


class PageFile:
    """A file, compressed when it is first asked for: plotly's takes a quarter of a second."""

    def __init__(self, kind: str, tag: str, read: Callable[[], bytes]) -> None:
        self._kind = kind
        self._tag = f'"{tag}"'
        self._read = read
        self._gzipped: bytes | None = None

    async def answer(self, request: Request, caching: str) -> Response:
        headers = {"Cache-Control": caching, "ETag": self._tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._tag:
            return Response(status_code=304, headers=headers)
        if self._gzipped is None:
            self._gzipped = await asyncio.to_thread(lambda: gzip.compress(self._read(), LEVEL, mtime=0))
        gzipped = self._gzipped
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(gzipped), media_type=self._kind, headers=headers)
        return Response(gzipped, media_type=self._kind, headers={**headers, "Content-Encoding": "gzip"})


class Content(NamedTuple):
    """All files of the page as they were at one moment."""

    mark: str
    files: Mapping[str, PageFile]
    stamps: Stamps


NOTHING = Content("", {}, ())


class PageFiles:
    """An ASGI application for /static/, and the page itself. The files are looked at again when the page is loaded.

    `content`: what another one of the same folder has read and compressed, which holds while the files are the same.
    """

    def __init__(self, folder: Path, content: Content = NOTHING) -> None:
        self._folder = folder
        self.content = content
        self._reading = asyncio.Lock()

    async def page(self, request: Request) -> Response:
        """/"""
        content = await self._fresh()
        return await content.files[PAGE].answer(request, ASK_AGAIN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        path = str(scope["path"]).removeprefix(str(scope.get("root_path", ""))).lstrip("/")
        answer = await self._answer(request, path) if request.method in ("GET", "HEAD") else None
        await (answer or Response("Not Found", status_code=404))(scope, receive, send)

    async def _answer(self, request: Request, path: str) -> Response | None:
        content = self.content if self.content.files else await self._fresh()
        mark, _, marked = path.partition("/")
        if mark == content.mark and marked in content.files:
            return await content.files[marked].answer(request, FOR_EVER)
        found = content.files.get(path) or (content.files.get(marked) if _is_mark(mark) else None)
        return None if found is None else await found.answer(request, ASK_AGAIN)

    async def _fresh(self) -> Content:
        async with self._reading:
            stamps = await asyncio.to_thread(_stamps, self._folder)
            if stamps != self.content.stamps:
                self.content = await asyncio.to_thread(_read, self._folder, stamps)
            return self.content


def _is_mark(text: str) -> bool:
    return len(text) == MARK_LENGTH and all(digit in "0123456789abcdef" for digit in text)


def _stamps(folder: Path) -> Stamps:
    return tuple(sorted(_each_stamp(folder)))


def _each_stamp(folder: Path) -> Iterator[tuple[str, int, int]]:
    for path in folder.rglob("*"):
        if path.suffix not in SUFFIXES:
            continue
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            yield path.relative_to(folder).as_posix(), found.st_mtime_ns, found.st_size


def _read(folder: Path, stamps: Stamps) -> Content:
    texts = {name: (folder / name).read_bytes() for name, _, _ in stamps}
    scripts = {name: text.decode() for name, text in texts.items() if name.endswith(".js")}
    texts |= {name: text.encode() for name, text in bundled(scripts, *SCRIPTS).items()}
    whole = hashlib.sha256(version("plotly").encode())
    for name, text in texts.items():
        whole.update(f"{name} {len(text)}\n".encode() + text)
    mark = whole.hexdigest()[:MARK_LENGTH]
    texts[PAGE] = texts[PAGE].replace(b'"static/', f'"static/{mark}/'.encode())
    files = {name: _file(name, text) for name, text in texts.items()}
    return Content(mark, {**files, PLOTLY: PageFile(SCRIPT, f"plotly-{version('plotly')}", _plotly)}, stamps)


def _file(name: str, text: bytes) -> PageFile:
    kind = SCRIPT if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
    return PageFile(kind, hashlib.sha256(text).hexdigest()[:MARK_LENGTH], lambda: text)


def _plotly() -> bytes:
    # The package itself is not imported: that takes seconds and 100 MiB.
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise RuntimeError("the plotly package is missing; install oomwatch[server]")
    return eager((Path(spec.origin).parent / "package_data" / "plotly.min.js").read_bytes())


def eager(script: bytes) -> bytes:
    """plotly's script with its one large function in parentheses: Chromium compiles such a one while it arrives.

    Else the page stands still for it, 0.2 s, when it is called. What has another form stays as it is.
    """
    if b", () => {\n" not in script[:1000] or not script.endswith(b"}));"):
        return script
    return script.replace(b", () => {\n", b", (() => {\n", 1)[:-2] + b"));"
