"""What five-minute blocks of a GPU's memory foretell, and what they do not."""

import random
from collections.abc import Callable, Sequence

import pytest

from oomwatch.core.blockforecast import BLOCK_SECONDS, LIMITS, BlockForecast, forecast
from oomwatch.core.peaks import Block

GIB = float(2**30)
CAPACITY = 48 * GIB
BLOCKS_PER_HOUR = 12
START = 1_790_000_100.0


def blocks(
    count: int, peak_gib: Callable[[int], float], below_gib: Callable[[int], float] = lambda _: 2.0
) -> list[Block]:
    """So many blocks, with the peak of each and how far its floor lies below."""
    return [
        Block(START + index * BLOCK_SECONDS, peak_gib(index) * GIB, (peak_gib(index) - below_gib(index)) * GIB)
        for index in range(count)
    ]


def foretold(fives: Sequence[Block]) -> BlockForecast:
    found = forecast(fives, CAPACITY)
    assert found is not None
    return found


def leak(per_hour: float, start: float = 24.0) -> Callable[[int], float]:
    return lambda index: start + per_hour * index / BLOCKS_PER_HOUR


def test_a_steady_leak_is_foretold_with_its_speed_and_the_time_that_is_left() -> None:
    found = foretold(blocks(12, leak(16, start=24)))  # 38.7 GiB after an hour
    assert found.slope_bytes_per_second * 3600 == pytest.approx(16 * GIB)
    assert found.eta_seconds == pytest.approx((48 - 24 - 16 * 11 / 12) / 16 * 3600)
    assert found.eta_low_seconds == pytest.approx(found.eta_seconds)
    assert found.eta_high_seconds == pytest.approx(found.eta_seconds)
    assert found.p < 0.01


def test_a_slow_leak_is_found_over_hours_where_one_hour_shows_only_traffic() -> None:
    dice = random.Random(3)
    noise = [dice.uniform(-3, 3) for _ in range(72)]
    fives = blocks(72, lambda index: leak(3, start=24)(index) + noise[index])
    assert foretold(fives).over_seconds > 3600
    assert forecast(fives[-13:], CAPACITY) is None


def test_a_leak_under_traffic_is_told_in_time_and_its_interval_holds_the_truth() -> None:
    dice = random.Random(1)
    noise = [dice.gauss(0, 1.5) for _ in range(40)]
    dips = [dice.uniform(2, 9) for _ in range(40)]

    def peak(index: int) -> float:
        return 25 + 16 * max(0, index - 20) / BLOCKS_PER_HOUR + noise[index]

    fives = blocks(40, peak, lambda index: dips[index])
    full = next(index for index, block in enumerate(fives) if block.peak_bytes >= CAPACITY)
    told = {index: found for index in range(full) if (found := forecast(fives[:index], CAPACITY))}
    assert min(told) <= full - 5
    first = told[min(told)]
    assert first.eta_low_seconds <= (full - min(told) + 1) * BLOCK_SECONDS
    assert first.eta_high_seconds is None or first.eta_high_seconds >= (full - min(told)) * BLOCK_SECONDS


HEALTHY: dict[str, list[Block]] = {
    "a model that is loaded, close to the capacity": blocks(30, lambda index: 24.0 if index < 24 else 46.0),
    "a program that starts": blocks(24, lambda index: (0.5, 12.0, 24.0, 40.0)[min(3, max(0, index - 14))]),
    "more traffic: peaks without floors": blocks(12, leak(16), lambda index: 4 + 16 * index / BLOCKS_PER_HOUR),
    "work that ends: floors without peaks": blocks(30, lambda _: 45.0, lambda index: 20 - 0.6 * index),
    "a rise that has ended": blocks(18, lambda index: min(44.0, leak(24)(index))),
    "a leak that was stopped by a restart": blocks(20, lambda index: leak(16)(index) if index < 16 else 20.0),
    "nothing in use": blocks(72, lambda _: 0.0, lambda _: 0.0),
    "full and steady": blocks(72, lambda _: 47.5, lambda _: 0.0),
}


@pytest.mark.parametrize("fives", HEALTHY.values(), ids=HEALTHY)
def test_what_is_no_leak_is_not_foretold(fives: list[Block]) -> None:
    assert forecast(fives, CAPACITY) is None


def test_traffic_without_a_trend_close_to_the_capacity_is_foretold_at_most_once_in_ten_days() -> None:
    dice = random.Random(0)
    draws = [(dice.gauss(40, 3), dice.uniform(2, 20)) for _ in range(10 * 24 * BLOCKS_PER_HOUR)]
    fives = blocks(len(draws), lambda index: min(47.9, draws[index][0]), lambda index: draws[index][1])
    warned = [end for end in range(len(fives)) if forecast(fives[max(0, end - 72) : end], CAPACITY)]
    assert len([end for end in warned if end - 1 not in warned]) <= 1


@pytest.mark.parametrize(("per_hour", "horizon"), [(8, LIMITS.horizon_seconds), (1, LIMITS.near_horizon_seconds)])
def test_a_leak_is_not_told_before_it_is_near_enough(per_hour: float, horizon: float) -> None:
    """At 8 GiB an hour the horizon comes first; at 1 GiB an hour most of the card has been in use for hours by then."""
    fives = blocks(360, leak(per_hour, start=24))
    end = next(end for end in range(360) if forecast(fives[max(0, end - 72) : end], CAPACITY))
    assert horizon - BLOCK_SECONDS < foretold(fives[max(0, end - 72) : end]).eta_seconds <= horizon


def test_far_from_full_an_hour_is_asked_for_and_near_it_half_an_hour() -> None:
    assert forecast(blocks(10, leak(30, start=10)), CAPACITY) is None
    assert forecast(blocks(12, leak(30, start=10)), CAPACITY) is not None  # 37.5 GiB
    assert forecast(blocks(5, leak(30, start=36)), CAPACITY) is None
    assert forecast(blocks(6, leak(30, start=32)), CAPACITY) is not None  # 44.5 GiB


def test_near_the_capacity_one_large_jump_in_a_rise_is_forgiven() -> None:
    """A leak in a program that also loads a model: a jump explains it better than a line, but it is nearly full."""

    def peak(index: int) -> float:
        return leak(12, start=20)(index) + (9 if index >= 6 else 0)

    near, far = blocks(12, lambda index: peak(index) + 5), blocks(12, peak)
    assert forecast(near, CAPACITY) is not None
    assert forecast(far, CAPACITY) is None


def test_the_running_block_is_heard_before_it_closes() -> None:
    fives = blocks(12, leak(16, start=20))
    assert forecast(fives, CAPACITY) is None  # full in 48 minutes
    running = Block(START + 12 * BLOCK_SECONDS, 37 * GIB, 35 * GIB)
    assert forecast(fives, CAPACITY, running) is not None


def test_hours_without_readings_are_no_part_of_a_span() -> None:
    before, after = blocks(6, leak(16)), blocks(60, leak(16))[-6:]
    assert forecast(before + [one._replace(peak_bytes=40 * GIB) for one in after], CAPACITY) is None
    running = Block(START + 60 * BLOCK_SECONDS, 47 * GIB, 46 * GIB)
    assert forecast(blocks(12, leak(16)), CAPACITY, running) is None


def test_one_missing_block_within_a_point_is_no_gap() -> None:
    fives = blocks(24, leak(10, start=24))
    assert forecast(fives[:15] + fives[16:], CAPACITY) is not None


def test_nothing_is_foretold_of_nothing() -> None:
    assert forecast([], CAPACITY) is None
    assert forecast([], CAPACITY, Block(START, 47 * GIB, 46 * GIB)) is None


def test_a_level_beyond_the_capacity_leaves_no_time() -> None:
    found = forecast(blocks(12, leak(16, start=34)), CAPACITY)
    assert found is not None
    assert found.eta_seconds == found.eta_low_seconds == 0.0
