"""What the system says of a failure, in words that a person can read and act on."""

import ast
import asyncio
import errno
import gzip
import os
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import httpx
import pytest

from oomwatch.oserror import in_words, with_place, with_remedy
from oomwatch.store.errors import StoreError

ROOT = Path(__file__).resolve().parent.parent
REFUSED = "Connection refused; does the server run there, and listen on that port?"


def raised(act: Callable[[], object]) -> Exception:
    try:
        act()
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_file_that_is_not_there_is_said_without_number_and_with_its_path_once(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    error = raised(path.read_bytes)
    assert in_words(error) == "No such file or directory"
    assert with_remedy(error) == "No such file or directory; is its name right?"
    assert with_place(error) == f"{path}: No such file or directory; is its name right?"


def test_of_a_file_that_cannot_be_renamed_it_is_the_new_name_that_counts(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    error = raised(lambda: (tmp_path / "a").rename(tmp_path / "b" / "c"))
    assert with_place(error) == f"{tmp_path / 'b' / 'c'}: No such file or directory; is its name right?"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EISDIR, errno.EMFILE, errno.EIO])
def test_what_a_disk_refuses_has_a_remedy(number: int) -> None:
    words, _, remedy = with_remedy(OSError(number, os.strerror(number), "/a")).partition("; ")
    assert words == os.strerror(number)
    assert remedy


def open_stream(port: int) -> Coroutine[None, None, object]:
    return asyncio.open_connection("localhost", port)


async def ask_by_httpx(port: int) -> object:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://localhost:{port}")


@pytest.mark.parametrize("connect", [open_stream, ask_by_httpx])
def test_a_refused_connection_is_said_alike_by_every_library(
    connect: Callable[[int], Coroutine[None, None, object]], closed_port: int
) -> None:
    assert with_remedy(raised(lambda: asyncio.run(connect(closed_port)))) == REFUSED


def test_a_refused_connection_is_said_so_by_urllib_too(closed_port: int) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert with_remedy(raised(lambda: opener.open(f"http://127.0.0.1:{closed_port}"))) == REFUSED


@pytest.mark.parametrize(("url", "told"), [("http://", "no host given"), ("x://a", "unknown url type: x")])
def test_an_address_that_leads_nowhere_is_said_without_urllibs_brackets(url: str, told: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert in_words(raised(lambda: opener.open(url))) == told


def test_several_addresses_that_refuse_are_said_once() -> None:
    both = "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] Connect call failed (..)"
    assert with_remedy(OSError(both)) == REFUSED


def test_several_addresses_that_fail_each_in_its_way_are_all_said() -> None:
    error = OSError("Multiple exceptions: [Errno 111] Connect call failed (..), [Errno 101] Connect call failed (..)")
    assert in_words(error) == "Connection refused, Network is unreachable"


def test_a_name_that_leads_nowhere_is_said_so() -> None:
    error = urllib.error.URLError(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    assert with_remedy(error).startswith("Name or service not known; is the host's name right")


@pytest.mark.parametrize("error", [TimeoutError(), TimeoutError("timed out"), asyncio.TimeoutError()])
def test_a_silence_is_said_so(error: Exception) -> None:
    assert in_words(error) == "no answer in time"


def test_a_file_of_bytes_is_said_to_be_no_text() -> None:
    assert in_words(raised(b"a\xff".decode)) == "it is no text in UTF-8 (byte 1)"


def test_a_file_without_certificates_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "a.pem"
    path.write_text("nothing")
    assert in_words(raised(lambda: ssl.create_default_context(cafile=path))) == "there is no certificate in it"
    chain = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert in_words(raised(lambda: chain.load_cert_chain(path))) == "it is no PEM file"


def test_a_certificate_that_lacks_a_field_is_to_be_made_anew_and_one_of_a_stranger_to_be_trusted() -> None:
    lacking, unknown = ssl.SSLCertVerificationError(), ssl.SSLCertVerificationError()
    lacking.verify_message = "CA cert does not include key usage extension"
    unknown.verify_message = "unable to get local issuer certificate"
    assert "make that certificate anew" in with_remedy(lacking)
    assert "have the authority that signed it trusted" in with_remedy(unknown)


def test_words_of_a_library_stay_as_they_are() -> None:
    assert in_words(raised(lambda: gzip.decompress(b"no"))) == "Not a gzipped file (b'no')"
    assert in_words(ValueError("")) == "ValueError"


def test_a_sentence_of_ours_stays_whatever_it_came_from() -> None:
    sentence = StoreError("database a.db: cannot open a.db.lock; make its folder writable")
    sentence.__cause__ = FileNotFoundError(errno.ENOENT, "No such file or directory", "a.db.lock")
    assert with_place(sentence) == str(sentence)


# How an OSError's own text came to people: with its number, and with the path that the sentence names already.
RAW = re.compile(r"\{error\.strerror|error\.strerror or|getattr\(error, .(?:strerror|reason).")
OWN_HOUSE = {"oserror.py", "within.py"}  # the second is sent into a Ray cluster without anything else of ours


def test_nobody_else_makes_words_of_what_the_system_says() -> None:
    folders = ("backend/oomwatch", "agent/oomwatch_agent")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py") if file.name not in OWN_HOUSE]
    assert [str(file.relative_to(ROOT)) for file in files if RAW.search(file.read_text("utf-8"))] == []
    told = [str(file.relative_to(ROOT)) for file in files for _ in raw_handlers(file)]
    assert told == []


def raw_handlers(file: Path) -> Iterator[ast.ExceptHandler]:
    """Those of an OSError that put it into a text as it is."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ExceptHandler) and node.type is not None and "OSError" in ast.unparse(node.type):
            shown = {ast.unparse(one.value) for one in ast.walk(node) if isinstance(one, ast.FormattedValue)}
            called = {ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Call)}
            told = any(call.startswith("logger.") and re.search(r", error[,)]", call) for call in called)
            if node.name in shown or f"str({node.name})" in called or told:
                yield node
