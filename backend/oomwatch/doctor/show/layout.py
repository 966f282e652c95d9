"""Text in columns and lines of a given width; a Chinese character is as wide as two others."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

COLUMNS = 100
_WIDE = ("W", "F")
_NO_CELL = ("Mn", "Me", "Cf")  # marks over the sign before them, and signs that are not seen
_GAP = re.compile(r"(?<=\S) {2,}")
_columns = ContextVar("columns", default=COLUMNS)


@contextmanager
def lines_of(columns: int) -> Iterator[None]:
    """All text that is laid out meanwhile is for a terminal of so many columns."""
    before = _columns.set(columns)
    try:
        yield
    finally:
        _columns.reset(before)


def width(text: str) -> int:
    """In columns of a terminal."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(sign: str) -> int:
    if unicodedata.category(sign) in _NO_CELL:
        return 0
    return 2 if unicodedata.east_asian_width(sign) in _WIDE else 1


def narrowed(lines: Sequence[str]) -> Iterator[str]:
    """What stands in columns of its own, run on over several lines where the terminal is too narrow for it.

    A line of a command that goes on behind it stays whole: it is there to be copied.
    """
    for line in lines:
        if width(line) <= _columns.get() or line.endswith(" \\"):
            yield line
        else:
            text = line.lstrip(" ")
            indent = line[: len(line) - len(text)]
            yield from wrapped(_GAP.sub("  ", text), indent, f"{indent}  ")


def left(text: str, columns: int) -> str:
    """Cut or filled up to so many columns."""
    short = cut(text, columns)
    return short + " " * (columns - width(short))


def right(text: str, columns: int) -> str:
    return " " * max(0, columns - width(text)) + text


def cut(text: str, columns: int) -> str:
    """Its beginning, with a sign that there is more."""
    if width(text) <= columns:
        return text
    kept = ""
    for one in text:
        if width(kept + one) > columns - 1:
            break
        kept += one
    return f"{kept}…"


def wrapped(text: str, indent: str = "", later: str | None = None) -> Iterator[str]:
    """Lines that the terminal holds; a word that is longer than a line has one of its own, to be copied whole."""
    words, start = "", indent
    for word in _words(text):
        if words and width((start + words + word).rstrip()) > _columns.get():
            yield (start + words).rstrip()
            start, words = indent if later is None else later, word.lstrip()
        else:
            words += word
    if words:
        yield (start + words).rstrip()


def _words(text: str) -> Iterator[str]:
    """What may not be divided, each with the space behind it; a line may end behind any Chinese character."""
    word = ""
    for one in text:
        word += one
        if one == " " or unicodedata.east_asian_width(one) in _WIDE:
            yield word
            word = ""
    if word:
        yield word


def printable(lines: Sequence[str]) -> Iterator[str]:
    """What names hold must not command the terminal, nor turn its text around."""
    return ("".join(one if one.isprintable() else "\ufffd" for one in line) for line in lines)


def bar(low: float, high: float, capacity: float, scale: float, cells: int) -> str:
    """What is expected, what is possible beyond it, and the room that is left up to the card's end.

    ███▒▒····│   fits        ██████████│██▒   does not
    """
    end = round(cells * capacity / scale)
    signs = [_cell((cell + 0.5) / cells * scale, low, high, capacity) for cell in range(cells)]
    return "".join([*signs[:end], "│", *signs[end:]])


def _cell(place: float, low: float, high: float, capacity: float) -> str:
    if place < low:
        return "█"
    if place < high:
        return "▒"
    return "·" if place < capacity else " "
