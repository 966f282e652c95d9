"""Text in columns and lines of a given width; a Chinese character is as wide as two others."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

COLUMNS = 100
_TEXT_MIN = 30  # columns that a paragraph needs beside what stands before it
_WIDE = ("W", "F")
_NO_CELL = ("Mn", "Me", "Cf")  # marks over the sign before them, and signs that are not seen
_GAP = re.compile(r"(?<=\S) {2,}")


class Paragraph(str):
    """Text that runs on over as many lines as it takes; which ones shows when the terminal's width is known."""

    indent: str = ""  # of its first line
    later: str | None = None  # of the others, where it is another


def flowing(text: str, indent: str = "", later: str | None = None) -> Iterator[Paragraph]:
    """As `wrapped`, for a width that is not known yet."""
    found = Paragraph(text)
    found.indent, found.later = indent, later
    yield found


def width(text: str) -> int:
    """In columns of a terminal."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(sign: str) -> int:
    if unicodedata.category(sign) in _NO_CELL:
        return 0
    return 2 if unicodedata.east_asian_width(sign) in _WIDE else 1


def laid_out(lines: Sequence[str], columns: int) -> Iterator[str]:
    """Paragraphs as lines, and what stands in columns of its own run on where the terminal is too narrow for it.

    A line of a command that goes on behind it stays whole: it is there to be copied.
    """
    for line in lines:
        if isinstance(line, Paragraph):
            has_room = width(line.indent) <= max(0, columns - _TEXT_MIN)
            yield from (
                wrapped(line, line.indent, line.later, columns) if has_room else _run_on(line.indent + line, columns)
            )
        elif width(line) <= columns or line.endswith(" \\"):
            yield line
        else:
            yield from _run_on(line, columns)


def _run_on(line: str, columns: int) -> Iterator[str]:
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    return wrapped(_GAP.sub("  ", text), indent, f"{indent}  ", columns)


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


def wrapped(text: str, indent: str = "", later: str | None = None, columns: int = COLUMNS) -> Iterator[str]:
    """Lines of at most so many columns; a word that is longer than a line has one of its own, to be copied whole."""
    words, start = "", indent
    for word in _words(text):
        if words and width((start + words + word).rstrip()) > columns:
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
