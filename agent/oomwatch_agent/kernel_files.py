"""Files of the kernel, in /proc and /sys: read at next to no cost, many times a second, and none is surely there."""

import os
from collections.abc import Callable
from pathlib import Path

_BUFFER_BYTES = 16384  # such files have some KiB
_LINE_BYTES = 256


def read_number(path: Path | str) -> int | None:
    """A file that holds one number; None where it is missing or says something else ("max")."""
    text = read_bytes(str(path)).strip()
    return int(text) if text.isdigit() else None


def read_table(path: Path) -> dict[str, int]:
    """A file of lines "name number", more words being ignored; without those lines that are not so."""
    fields = (line.split() for line in read_lines(path))
    return {words[0]: int(words[1]) for words in fields if len(words) > 1 and words[1].isdigit()}


def read_fields(path: Path | str, *names: str) -> dict[str, int]:
    """The same of these names alone ("MemTotal" for a line "MemTotal: 5 kB"): cheap enough for every read."""
    text = b"\n" + read_bytes(str(path))
    found = ((name, _number_of(text, name.encode())) for name in names)
    return {name: number for name, number in found if number is not None}


def _number_of(text: bytes, name: bytes) -> int | None:
    """What stands behind a name at the start of a line. Searched for plainly: half a table goes by before the name."""
    for begin in (b"\n%b:" % name, b"\n%b " % name):
        at = text.find(begin)
        if at >= 0:
            words = text[at + len(begin) : at + len(begin) + _LINE_BYTES].split(None, 1)
            return int(words[0]) if words and words[0].isdigit() else None
    return None


def read_bytes(path: str) -> bytes:
    """A file of the kernel, at a third of what Path costs; empty where it cannot be read."""
    return _read(path, _whole)


def read_line(path: str) -> bytes:
    """A file of the kernel that is one short line, in one read; empty where it cannot be read."""
    return _read(path, _first)


def _read(path: str, take: Callable[[int], bytes]) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return take(file)
    except OSError:
        return b""
    finally:
        os.close(file)


def _whole(file: int) -> bytes:
    parts = []
    while part := os.read(file, _BUFFER_BYTES):  # the kernel gives a long table in several parts
        parts.append(part)
    return b"".join(parts)


def _first(file: int) -> bytes:
    return os.read(file, _LINE_BYTES)


def names_in(folder: str) -> list[str]:
    """What is in a folder of the kernel; empty where it cannot be listed."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - thousands of Paths would cost more than the reading
    except OSError:
        return []


def read_lines(path: Path) -> list[str]:
    """A file's lines as text; none where it cannot be read."""
    return read_bytes(str(path)).decode("utf-8", "replace").splitlines()
