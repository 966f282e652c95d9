"""The picture shows the curve, its gaps, and the limit where there is one."""

import io

import pytest
from PIL import Image

from oomwatch.notify.channel import Curve
from oomwatch.notify.picture import HEIGHT, LEFT, LIMIT, LINE, WIDTH, draw, stretches

TIMES = tuple(float(second) for second in range(0, 900, 10))


def pixels_of(content: bytes | None, colour: str) -> set[tuple[int, int]]:
    """Where the picture is of about that colour."""
    assert content is not None
    wanted = tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
    with Image.open(io.BytesIO(content)) as image:
        data = image.convert("RGB")
        return {
            (x, y)
            for x in range(WIDTH)
            for y in range(HEIGHT)
            if all(abs(int(a) - b) < 60 for a, b in zip(_rgb(data, x, y), wanted, strict=True))
        }


def _rgb(image: Image.Image, x: int, y: int) -> tuple[int, ...]:
    pixel = image.getpixel((x, y))
    assert isinstance(pixel, tuple)
    return tuple(int(part) for part in pixel)


def test_a_curve_that_rises_is_drawn_rising_with_its_limit_above() -> None:
    values = tuple(0.4 + 0.4 * n / len(TIMES) for n in range(len(TIMES)))
    content = draw(Curve(TIMES, values, "ratio", limit=0.9))
    line = pixels_of(content, LINE)
    left = min(y for x, y in line if x < LEFT + 50)
    right = min(y for x, y in line if x > WIDTH - 60)
    assert right < left  # upwards
    limit = [y for x, y in pixels_of(content, LIMIT) if x > LEFT + 5]
    assert limit
    assert max(limit) < right
    assert content is not None
    assert len(content) < 30_000


def test_a_gap_is_left_open() -> None:
    values = tuple(None if 30 <= n < 60 else 0.5 for n in range(len(TIMES)))
    line = pixels_of(draw(Curve(TIMES, values, "ratio")), LINE)
    middle = (LEFT + WIDTH) // 2
    assert not [x for x, _ in line if abs(x - middle) < 50]


def test_stretches_are_what_lies_between_gaps() -> None:
    curve = Curve((1, 2, 3, 4, 5), (None, 1, 2, None, 3), "count")
    assert list(stretches(curve)) == [[(2, 1), (3, 2)], [(5, 3)]]


@pytest.mark.parametrize("values", [(), (None,), (1.0,), (None, 1.0, None)])
def test_fewer_than_two_values_are_no_picture(values: tuple[float | None, ...]) -> None:
    assert draw(Curve(tuple(float(n) for n in range(len(values))), values, "ratio")) is None


@pytest.mark.parametrize("values", [(0.0, 0.0), (5.0, 5.0), (1.0, None, 1.0), (1e300, 2e300)])
def test_odd_values_are_drawn_all_the_same(values: tuple[float | None, ...]) -> None:
    assert draw(Curve(tuple(float(n) for n in range(len(values))), values, "bytes", limit=0.0))
