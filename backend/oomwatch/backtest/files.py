"""Files as they lie about: packed or not, and with errors that say where."""

import gzip
import io
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from oomwatch.backtest.source import InputError
from oomwatch.oserror import with_remedy

HEAD_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_BLOCK_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def blocks_of(path: Path) -> Iterator[bytes]:
    """The content of a file, unpacked where it is packed with gzip, without a byte order mark. Raises InputError."""
    try:
        with _opened(path) as file:
            packed = file.peek(2)[:2] == _GZIP_MAGIC
            with gzip.open(file) if packed else file as content:
                yield from _blocks(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {with_remedy(error)}") from error


def is_pipe(path: Path) -> bool:
    """Whether it can be read but once: a pipe, a terminal."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _opened(path: Path) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(_piped(path))) if is_pipe(path) else path.open("rb")


@cache
def _piped(path: Path) -> bytes:
    """All that comes through a pipe, kept: an input is read more than once."""
    return path.read_bytes()


def _blocks(content: "BinaryIO | gzip.GzipFile") -> Iterator[bytes]:
    if first := content.read(_BLOCK_BYTES):
        yield first.removeprefix(_BYTE_ORDER_MARK)
    while block := content.read(_BLOCK_BYTES):
        yield block


def head_of(path: Path) -> bytes:
    """The first bytes of a file, enough to see what it is. Raises InputError."""
    head = b""
    for block in blocks_of(path):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends; damaged characters are replaced. Raises InputError."""
    rest = b""
    for block in blocks_of(path):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r").decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
