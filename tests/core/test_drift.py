"""Drift against noise, noise with a memory, and what levels off."""

import random

from oomwatch.core.drift import drift
from oomwatch.core.relation import line_with, slope_through, together


def test_a_straight_rise_is_drift_at_its_own_pace() -> None:
    assert drift([2.0 * step for step in range(30)], 10) == 2.0
    assert drift([2.0 * step for step in range(29)], 10) is None  # too few
    assert drift([2.0 * step for step in range(30)], 59) is None  # too little
    assert drift([-2.0 * step for step in range(30)], 10) is None


def test_a_return_to_what_was_before_is_none() -> None:
    rise = [100.0 - step for step in range(20)] + [80.0 + 0.8 * step for step in range(30)]
    assert drift(rise[-30:], 10) is not None
    assert drift([110.0, *rise], 10) is None


def test_what_levels_off_is_none() -> None:
    assert drift([100 - 50 * 2 ** (-step / 6) for step in range(40)], 1) is None


def test_noise_with_a_memory_is_seldom_taken_for_drift() -> None:
    found = 0
    for seed in range(30):
        dice, series = random.Random(seed), [0.0]
        for _ in range(200):
            series.append(0.8 * series[-1] + dice.gauss(0, 1))
        found += sum(drift(series[max(0, end - 60) : end], 0.0) is not None for end in range(30, 200))
    assert found / (30 * 170) < 0.005


def test_a_line_has_its_slope_and_the_flattest_that_the_points_allow() -> None:
    dice = random.Random(1)
    xs = [dice.uniform(0, 100) for _ in range(30)]
    points = [(x, 5 + 3 * x + dice.gauss(0, 5)) for x in xs]
    slope = slope_through(points)
    assert slope is not None
    assert 2.8 < slope.likeliest < 3.2
    assert 2.5 < slope.flattest < slope.likeliest
    assert slope.p < 1e-6
    line = line_with(slope, points)
    assert 2 < line.spread < 8
    assert line.at_least(200) < line.at(200)
    assert abs(line.at(0) - 5) < 10


def test_series_have_in_common_what_is_not_their_level() -> None:
    assert together([{1.0: 10.0, 2.0: 12.0, 3.0: 14.0}, {1.0: 50.0, 2.0: 54.0}]) == {1.0: -2.0, 2.0: 1.0, 3.0: 2.0}
    assert together([{}]) == {}


def test_no_line_goes_through_points_above_one_another() -> None:
    assert slope_through([(1.0, 2.0), (1.0, 3.0)]) is None
