"""By how much a short series rose, and how fast it goes on."""

import pytest

from oomwatch.core.shortseries import correlation, pace, parted, rise

NOISE = [10.0, 10.4, 9.8, 10.1, 10.3, 9.9, 10.2, 10.0, 10.4, 9.7, 10.1, 10.2]


@pytest.mark.parametrize(
    ("values", "risen"),
    [
        ([], 0.0),
        ([1.0, 2.0], 0.0),
        ([1.0, 2.0, 4.0], 3.0),
        ([1.0, 3.0, 2.0, 4.0], 0.0),
        (NOISE, 0.0),
        ([*NOISE, 13.0], 2.6),  # a leap
        ([*NOISE, 11.4, 12.4, 13.4], 3.1),  # the beginning of a slope
        ([*NOISE, 12.0, 12.1, 12.0, 12.2], 2.6),  # a step up, and level since
        ([*NOISE, 11.0, 10.0, 10.8], 0.0),
    ],
)
def test_a_rise_is_what_lies_beyond_chance(values: list[float], risen: float) -> None:
    assert rise(values) == pytest.approx(risen, abs=0.15)


def test_the_pace_is_that_of_the_last_values_where_they_climb_faster() -> None:
    assert pace([*NOISE, 11.4, 13.4, 15.4]) == pytest.approx(2.0)
    assert pace(NOISE) == 0
    assert pace([float(value) for value in range(12)]) == pytest.approx(1)


def test_what_does_not_climb_to_its_end_has_the_pace_of_its_trend() -> None:
    values = [value + 0.5 * (value % 2 == 0) for value in map(float, range(13))]
    assert pace([*values, 12.5, 12.4]) == pytest.approx(1.0, abs=0.1)


def test_a_series_that_rose_where_another_did_is_told_of_few_values() -> None:
    assert parted([2.7, 2.7, 5.3, 5.3], 2) == pytest.approx(2.6)
    assert parted([2.7, 5.3, 2.7, 5.3], 2) == 0
    assert parted([2.7, 5.3], 0) == parted([2.7, 5.3], 2) == parted([], 3) == 0


def test_correlation_is_of_ranks_and_never_negative() -> None:
    assert correlation([(x, x**3) for x in range(6)]) == 1
    assert correlation([(x, -x) for x in range(6)]) == 0
    assert correlation([(x, x) for x in range(3)]) == 0  # too few to tell
    assert correlation([(1.0, 1.0)] * 6) == 0
