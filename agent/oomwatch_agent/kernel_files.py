"""Files of the kernel, in /proc and /sys: read at next to no cost, many times a second, and none is surely there."""

import os
from collections.abc import Callable, Iterator, Sequence
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
    return _fields_of(b"\n" + read_bytes(str(path)), names)


def _fields_of(text: bytes, names: Sequence[str]) -> dict[str, int]:
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


class KeptFile:
    """A file of the kernel that is read at every reading, and kept open: to open it costs as much as to read it.

    Used by one thread at a time.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        self._file: int | None = None

    def read_fields(self, *names: str) -> dict[str, int]:
        """As the function of that name; no further than the last of these names."""
        text, found = b"\n", dict[str, int]()
        for part in self._parts():
            text += part
            found = _fields_of(text[: text.rfind(b"\n") + 1], names)
            if len(found) == len(names):
                break
        return found

    def read_short(self) -> bytes:
        """A file of some lines, in one read; empty where it cannot be read."""
        return self._part(0)

    def close(self) -> None:
        """It is opened again by the next reading."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _parts(self) -> Iterator[bytes]:
        """The kernel gives a long table in several parts; an empty one ends it."""
        at = 0
        while part := self._part(at):
            yield part
            at += len(part)

    def _part(self, at: int) -> bytes:
        was_open = self._file is not None
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._file, _BUFFER_BYTES, at)
        except OSError:
            self.close()
            return self._part(at) if was_open else b""  # what was open may be gone, and another be in its place


def names_in(folder: str) -> list[str]:
    """What is in a folder of the kernel; empty where it cannot be listed."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - thousands of Paths would cost more than the reading
    except OSError:
        return []


def read_lines(path: Path) -> list[str]:
    """A file's lines as text; none where it cannot be read."""
    return read_bytes(str(path)).decode("utf-8", "replace").splitlines()
