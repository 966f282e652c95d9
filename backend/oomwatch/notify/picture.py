"""A figure of the last minutes as a small PNG, for messages that may carry a picture. Pure."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from oomwatch.figures import duration, figure
from oomwatch.notify.channel import Curve

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

# Pixels. It is drawn twice as large and made smaller, which smooths the lines.
WIDTH, HEIGHT, SCALE = 720, 240, 2
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 18, 34
FONT = 13
HEADROOM = 1.08  # of the greatest value, so that a line along the top is seen
PAPER, INK, GRID, LINE, LIMIT = "#ffffff", "#374151", "#e5e7eb", "#2563eb", "#dc2626"


class _Plot(NamedTuple):
    """From times and values to points of the paper."""

    start: float
    end: float
    top: float

    def x(self, at: float) -> float:
        span = max(self.end - self.start, 1e-9)
        return SCALE * (LEFT + (WIDTH - LEFT - RIGHT) * (at - self.start) / span)

    def y(self, value: float) -> float:
        share = min(max(value / self.top, 0.0), 1.0)
        return SCALE * (HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share)


def draw(curve: Curve) -> bytes | None:
    """The PNG; None where there are not two values. Its few words are numbers, so it is the same in every language."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - slow to load, and needed by few

    known = [value for value in curve.values if value is not None]
    if len(known) < 2:  # noqa: PLR2004
        return None
    highest = max((*known, curve.limit or 0.0))
    plot = _Plot(curve.times[0], curve.times[-1], highest * HEADROOM or 1.0)
    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), PAPER)
    _paint(ImageDraw.Draw(image), curve, plot, max(known))
    content = io.BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(content, "PNG", optimize=True)
    return content.getvalue()


def _paint(draw: "ImageDraw", curve: Curve, plot: _Plot, highest: float) -> None:
    _mark(draw, plot, curve, 0.0, GRID)
    _mark(draw, plot, curve, highest, GRID, named=curve.limit is None or _is_apart(plot, highest, curve.limit))
    for stretch in stretches(curve):
        points = [(plot.x(at), plot.y(value)) for at, value in stretch]
        draw.line(points if len(points) > 1 else points * 2, fill=LINE, width=2 * SCALE, joint="curve")
    if curve.limit is not None:
        _mark(draw, plot, curve, curve.limit, LIMIT)
    _write_times(draw, plot)


def _is_apart(plot: _Plot, one: float, other: float) -> bool:
    """Whether there is room for both their names."""
    return abs(plot.y(one) - plot.y(other)) > SCALE * (FONT + 2)


def _mark(draw: "ImageDraw", plot: _Plot, curve: Curve, value: float, colour: str, *, named: bool = True) -> None:
    """A line across the paper, with its value beside it."""
    y = SCALE * round(plot.y(value) / SCALE)  # a whole pixel, so that the line is sharp
    draw.rectangle([(SCALE * LEFT, y), (SCALE * (WIDTH - RIGHT), y + SCALE - 1)], fill=colour)
    if named:
        ink = LIMIT if colour == LIMIT else INK
        _write(draw, SCALE * (LEFT - 8), y, figure(value, curve.unit, "en"), "rm", ink)


def _write_times(draw: "ImageDraw", plot: _Plot) -> None:
    y = SCALE * (HEIGHT - BOTTOM + 8)
    _write(draw, SCALE * LEFT, y, f"-{duration(plot.end - plot.start, 'en')}", "la", INK)
    _write(draw, SCALE * (WIDTH - RIGHT), y, "0", "ra", INK)


def _write(draw: "ImageDraw", x: float, y: float, text: str, anchor: str, ink: str) -> None:
    from PIL import ImageFont  # noqa: PLC0415

    draw.text((x, y), text, fill=ink, font=ImageFont.load_default(FONT * SCALE), anchor=anchor)


def stretches(curve: Curve) -> Iterator[list[tuple[float, float]]]:
    """The points between two gaps."""
    here: list[tuple[float, float]] = []
    for at, value in zip(curve.times, curve.values, strict=True):
        if value is not None:
            here.append((at, value))
        elif here:
            yield here
            here = []
    if here:
        yield here
