"""Tables of Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar or a line's end within a cell does not end it."""
    names = tuple(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def code(text: str) -> str:
    """As code; nothing where there is nothing."""
    return f"`{text}`" if text else ""
