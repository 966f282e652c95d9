"""Files as they lie about: packed or not, and with errors that say where."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from oomwatch.backtest.source import InputError

HEAD_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_BLOCK_BYTES = 1024 * 1024


def blocks_of(path: Path) -> Iterator[bytes]:
    """The content of a file, unpacked where it is packed with gzip. Raises InputError."""
    try:
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == _GZIP_MAGIC
            with gzip.open(file) if packed else file as content:
                yield from _blocks(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _blocks(content: "BinaryIO | gzip.GzipFile") -> Iterator[bytes]:
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
