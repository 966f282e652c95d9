"""Trends of short series, against figures worked out by hand or from the published tables."""

import random
from itertools import permutations

import pytest

from oomwatch.core import trend


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_a_series_that_only_rises_is_one_order_of_all(n: int) -> None:
    orders = len(list(permutations(range(n))))
    assert trend.rising_p([float(value) for value in range(n)]) == pytest.approx(1 / orders)


def test_the_exact_p_is_the_share_of_orders_that_look_as_rising() -> None:
    def score(values: tuple[int, ...]) -> int:
        return sum((b > a) - (b < a) for index, a in enumerate(values) for b in values[index + 1 :])

    values = (1, 3, 2, 5, 4)
    orders = list(permutations(values))
    share = sum(score(order) >= score(values) for order in orders) / len(orders)
    assert trend.rising_p([float(value) for value in values]) == pytest.approx(share)


def test_a_falling_or_a_constant_series_is_not_rising() -> None:
    assert trend.rising_p([5.0, 4.0, 3.0, 2.0, 1.0]) == 1.0
    assert trend.rising_p([1.0] * 8) >= 0.5
    assert trend.rising_p([1.0] * 30) >= 0.5


def test_beyond_the_exact_table_the_normal_curve_takes_over_smoothly() -> None:
    """Twelve values are counted out and thirteen are not: a middling series keeps about its p."""
    values = [0.0, 3.0, 1.0, 4.0, 2.0, 6.0, 3.5, 7.0, 2.5, 5.0, 6.5, 4.5]
    exact, near = trend.rising_p(values), trend.rising_p([*values, 4.2])
    assert near == pytest.approx(exact, rel=0.6)
    assert 0.001 < near < 0.05


def test_the_slope_is_not_moved_by_one_odd_value() -> None:
    values = [float(index) for index in range(10)]
    values[5] = 500.0
    assert trend.slope(values) == pytest.approx(1.0, abs=0.2)


def test_noise_without_a_trend_is_seldom_significant() -> None:
    dice = random.Random(1)
    series = [[dice.gauss(0, 1) for _ in range(20)] for _ in range(2000)]
    assert sum(trend.rising_p(one) < 0.002 for one in series) < 12  # 4 are expected


def test_scatter_is_a_standard_deviation_that_odd_values_do_not_move() -> None:
    dice = random.Random(1)
    noise = [dice.gauss(10, 2) for _ in range(400)]
    assert 1.8 < trend.scatter(noise) < 2.2
    assert 1.8 < trend.scatter([*noise, *[1000.0] * 20]) < 2.4
