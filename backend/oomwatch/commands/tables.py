"""Tables on a terminal."""

from collections.abc import Sequence

from oomwatch.figures import printable


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table, its columns under each other. What agents call things cannot command a terminal."""
    shown = [[printable(cell) for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
