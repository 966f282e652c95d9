"""Chunks of a log to the lines that matter in it. PURE.

Most of a log is model output, progress bars and chatter. `wanted` goes over the bytes with one search for all literals
that any pattern needs, and decodes a line only where one stands, or where the reader asked to see whatever comes next.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_LINE_BYTES = 64 * 1024  # a step line of verl has 3 to 8 thousand
_END = re.compile(rb"[\r\n]")


class Chunk(NamedTuple):
    """Whole lines as bytes, each ended by LF or CR. `number` is the first one's in its file, 0 where it is unknown."""

    data: bytes
    number: int


class Row(NamedTuple):
    """One line without its end. An editor counts line feeds only, and so does `number`; 0: not known."""

    text: str
    number: int
    passed: int = 0  # lines since the row before this one that were not worth looking at
    candidate: bool = True  # a literal stands in it
    complete: bool = False  # the next line has an envelope of its own, so that this one ends here
    before: str | None = None  # the line before, where it was passed over and has an envelope while this has none


# How the lines of a Ray driver's log begin, in bytes: coloured, or (WorkerDict pid=7, ...
_OWN_ENVELOPE = re.compile(rb"\x1b\[\d{1,3}m\(|\((?:[\w.]{1,80} )?pid=\d|\(raylet")


def every(chunk: Chunk) -> Iterator[Row]:
    """All lines that are not empty."""
    return wanted(chunk, None, lambda: True)


def wanted(chunk: Chunk, literals: re.Pattern[bytes] | None, attentive: Callable[[], bool]) -> Iterator[Row]:
    """Lines with a literal in them; every line for as long as `attentive()` holds, which is asked after each row."""
    data, at, passed = chunk.data, 0, 0
    seen = chunk.number  # the number of the line at `at`
    match = None
    while at < len(data):
        start = at
        if literals is not None:
            if match is None or match.start() < at:
                match = literals.search(data, at)
            if not attentive():
                if match is None:
                    return
                start = max(at, data.rfind(b"\n", at, match.start()) + 1, data.rfind(b"\r", at, match.start()) + 1)
                passed = data.count(b"\n", at, start)
                seen += passed
        end = _end_of_line(data, start)
        if end > start:
            text = data[start : min(end, start + MAX_LINE_BYTES)].decode("utf-8", "replace")
            candidate = match is not None and match.start() < end
            complete = _OWN_ENVELOPE.match(data, end + 1) is not None
            before = _line_before(data, start) if passed else None
            yield Row(text, seen if chunk.number else 0, passed, candidate, complete, before)
            passed = 0
        seen += data[end : end + 1] == b"\n"
        at = end + 1


def _line_before(data: bytes, start: int) -> str | None:
    """The line before the one at `start`, if that may be the end of it: broken by a terminal."""
    begin = data.rfind(b"\n", 0, start - 1) + 1
    if _OWN_ENVELOPE.match(data, start) or not _OWN_ENVELOPE.match(data, begin):
        return None
    return data[begin : min(start - 1, begin + MAX_LINE_BYTES)].decode("utf-8", "replace")


def _end_of_line(data: bytes, start: int) -> int:
    match = _END.search(data, start)
    return match.start() if match else len(data)
