"""How the page's files are served: out of memory, compressed, and for ever under an address that bears their mark."""

import asyncio
import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Message

from oomwatch.web.static import PageFiles, eager
from oomwatch_frontend import STATIC


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return gzip.decompress(self.body).decode() if "content-encoding" in self.headers else self.body.decode()


Ask = Callable[..., Answer]


def asking(folder: Path, files: PageFiles | None = None) -> Ask:
    """Asks an application that serves this folder, without a network."""
    files = files or PageFiles(folder)
    app = Starlette(routes=[Route("/", files.page), Mount("/static", files)])

    def ask(path: str, method: str = "GET", **headers: str) -> Answer:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        named = {"accept-encoding": "gzip", **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope = {
            "type": "http", "method": method, "path": path, "root_path": "", "query_string": b"", "http_version": "1.1",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        }  # fmt: skip
        asyncio.run(app(scope, receive, send))
        begin, *rest = sent
        told = {name.decode(): value.decode() for name, value in begin["headers"]}
        return Answer(begin["status"], told, b"".join(part.get("body", b"") for part in rest))

    return ask


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A page of two scripts, and another one beside them."""
    (tmp_path / "js").mkdir()
    (tmp_path / "index.html").write_text('<script type="module" src="static/js/main.js"></script>')
    (tmp_path / "js" / "live.js").write_text("export const live = 1;")
    (tmp_path / "js" / "main.js").write_text('import { live } from "./live.js";\nlive;')
    (tmp_path / "js" / "other.js").write_text("export {};")
    (tmp_path / "__init__.py").write_text("SECRET = 1")
    return tmp_path


def named_in(page: Answer) -> str:
    found = re.search(r'src="(static/[^"]+)"', page.text)
    assert found is not None
    return f"/{found[1]}"


def test_the_page_names_its_scripts_by_a_mark_and_browsers_keep_these_for_ever(folder: Path) -> None:
    ask = asking(folder)
    page = ask("/")
    assert page.headers["cache-control"] == "no-cache"
    address = named_in(page)
    assert re.fullmatch(r"/static/[0-9a-f]{12}/js/main\.js", address)
    script = ask(address)
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.headers["content-type"].startswith("text/javascript")
    assert 'const { live } = $need("js/live.js");' in script.text
    assert ask(address.replace("main", "other")).text == "export {};"  # what a script imports has the mark too


def test_without_its_mark_a_file_is_there_and_asked_for_again_each_time(folder: Path) -> None:
    ask = asking(folder)
    script = ask("/static/js/main.js")
    assert script.headers["cache-control"] == "no-cache"
    again = ask("/static/js/main.js", if_none_match=script.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_a_file_that_has_changed_has_another_address_when_the_page_is_loaded_again(folder: Path) -> None:
    ask = asking(folder)
    before = named_in(ask("/"))
    (folder / "js" / "other.js").write_text("export const more = 1;")
    after = named_in(ask("/"))
    assert after != before
    assert ask(after.replace("main", "other")).text == "export const more = 1;"


def test_a_change_that_keeps_the_size_is_seen_by_its_time(folder: Path) -> None:
    ask = asking(folder)
    before = named_in(ask("/"))
    path = folder / "js" / "other.js"
    path.write_text("let a = 1;")
    os.utime(path, ns=(1, 1))
    assert named_in(ask("/")) != before


def test_what_one_has_read_another_one_has_while_the_files_are_the_same(folder: Path) -> None:
    first = PageFiles(folder)
    asking(folder, first)("/")
    second = PageFiles(folder, first.content)
    asking(folder, second)("/")
    assert second.content is first.content
    (folder / "js" / "other.js").write_text("export const more = 1;")
    asking(folder, second)("/")
    assert second.content.mark != first.content.mark


def test_a_page_from_before_an_upgrade_still_gets_its_files_but_keeps_them_no_longer(folder: Path) -> None:
    ask = asking(folder)
    ask("/")
    late = ask("/static/0123456789ab/js/other.js")
    assert late.status == 200
    assert late.headers["cache-control"] == "no-cache"


def test_a_client_that_reads_no_gzip_gets_plain_text(folder: Path) -> None:
    plain = asking(folder)("/static/js/other.js", accept_encoding="identity")
    assert "content-encoding" not in plain.headers
    assert plain.body == b"export {};"


@pytest.mark.parametrize(
    "path",
    [
        "__init__.py",
        "js",
        "",
        "../secret.txt",
        "0123456789ab/__init__.py",
        "no-mark/js/main.js",
        "0123456789ab/../secret.txt",
    ],
)
def test_what_is_not_the_pages_is_not_there(folder: Path, path: str) -> None:
    (folder.parent / "secret.txt").write_text("secret")
    assert asking(folder)(f"/static/{path}").status == 404


def test_files_are_read_and_never_written(folder: Path) -> None:
    assert asking(folder)("/static/js/main.js", method="POST").status == 404


def test_plotly_is_served_compressed_and_kept_by_the_browser() -> None:
    ask = asking(STATIC)
    found = re.search(r"static/[0-9a-f]{12}/", ask("/").text)
    assert found is not None
    script = ask(f"/{found[0]}vendor/plotly.min.js")
    assert script.headers["content-encoding"] == "gzip"
    assert script.headers["cache-control"].endswith("immutable")
    assert "plotly.js" in script.text[:1000]
    assert len(script.body) < len(script.text) / 3
    again = ask(f"/{found[0]}vendor/plotly.min.js", if_none_match=script.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_plotlys_function_is_compiled_as_it_arrives_and_means_the_same() -> None:
    shipped = b"(\n function(root, factory) {\n} (self, () => {\nreturn Plotly;\n}));"
    assert eager(shipped) == b"(\n function(root, factory) {\n} (self, (() => {\nreturn Plotly;\n})));"
    assert eager(b"another form") == b"another form"
    assert ", (() => {\n" in asking(STATIC)("/static/vendor/plotly.min.js").text[:1000]
