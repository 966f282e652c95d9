"""Some seconds together tell the least and the greatest exactly, the mean nearly, and how many there were."""

from array import array
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch.store import columns, tiers
from oomwatch.store.columns import Columns
from oomwatch.store.tiers import MEAN_PARTS, Rolled

NOON_MS = 1_699_963_200_000
WIDTH_MS = 10_000
MISSING = float("nan")
values = st.integers(0, 2**24).map(float) | st.just(MISSING)
rows = st.lists(st.tuples(st.integers(0, 4000), values, values), min_size=1, max_size=60)


def readings(steps: Sequence[tuple[int, float, float]], begin_ms: int = NOON_MS) -> Columns:
    at_ms, moments = begin_ms, []
    for step_ms, _, _ in steps:
        at_ms += step_ms
        moments.append(at_ms)
    return Columns(array("q", moments), tuple(array("f", (row[place] for row in steps)) for place in (1, 2)))


def field(part: Columns, index: int) -> Rolled:
    found = tiers.field_of(Columns(part.at_ms, tuple(part.values[place] for place in tiers.places_of(index))))
    assert found is not None
    return found


def expected(part: Columns, index: int) -> dict[int, list[float]]:
    """The known readings of each bucket."""
    found: dict[int, list[float]] = defaultdict(list)
    for at_ms, value in zip(part.at_ms, part.values[index], strict=True):
        found[at_ms // WIDTH_MS * WIDTH_MS] += [value] if value == value else []  # noqa: PLR0124
    return dict(found)


def holds_to(rolled: Rolled, known: dict[int, list[float]], slack_parts: float = 0.5) -> None:
    assert list(rolled.at_ms) == list(known)
    for at_ms, low, high, mean, count in zip(*rolled, strict=True):
        of = known[at_ms]
        assert count == len(of)
        if of:
            assert (low, high) == (min(of), max(of))
            assert mean == pytest.approx(sum(of) / len(of), abs=(high - low) * slack_parts / MEAN_PARTS + 1e-6)
        else:
            assert low != low  # noqa: PLR0124 - NaN is not itself


@given(rows)
def test_the_least_and_the_greatest_of_every_bucket_are_those_of_its_readings(
    steps: list[tuple[int, float, float]],
) -> None:
    part = readings(steps)
    packed = columns.pack_tight(tiers.rolled(part, WIDTH_MS))
    again = columns.unpack(part.at_ms[0] // WIDTH_MS * WIDTH_MS, packed, typecode=tiers.TYPECODE)
    for index in (0, 1):
        holds_to(field(again, index), expected(part, index))


@given(rows, rows, st.integers(-40_000, 200_000))
def test_late_readings_are_added_to_the_bucket_in_which_they_belong(
    first: list[tuple[int, float, float]], late: list[tuple[int, float, float]], shift_ms: int
) -> None:
    old, new = readings(first), readings(late, NOON_MS + shift_ms)
    both = tiers.joined(tiers.rolled(old, WIDTH_MS), tiers.rolled(new, WIDTH_MS))
    for index in (0, 1):
        holds_to(field(both, index), expected(columns.merged([old, new]), index), slack_parts=1.5)


@given(rows)
def test_the_greatest_of_each_bucket_can_stand_for_its_readings(steps: list[tuple[int, float, float]]) -> None:
    part = readings(steps)
    found = tiers.greatest(tiers.rolled(part, WIDTH_MS))
    for index in (0, 1):
        told = [max(of) if of else None for of in expected(part, index).values()]
        assert [value if value == value else None for value in found.values[index]] == told  # noqa: PLR0124


def test_a_part_without_the_later_columns_is_joined_with_one_that_has_them() -> None:
    old = tiers.rolled(Columns(array("q", [NOON_MS]), (array("f", [1]),)), WIDTH_MS)
    new = tiers.rolled(readings([(20_000, 2, 3)]), WIDTH_MS)
    for both in (tiers.joined(old, new), tiers.joined(new, old)):
        assert list(field(both, 0).high) == [1, 2]
        assert field(both, 1).counts == [0, 1]


def test_a_figure_that_stood_still_costs_nothing() -> None:
    hour = Columns(array("q", range(NOON_MS, NOON_MS + 3_600_000, 1000)), (array("f", [7.0]) * 3600,) * 6)
    assert len(columns.pack_tight(tiers.rolled(hour, WIDTH_MS))) < 360 * 6 * 3 / 50
