"""When the agent reads: on a grid of its own, without drift and without bursts. When it tries again: with jitter."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from oomwatch_agent.pace import Backoff, Pace, offset_seconds

NOW = 1_790_000_000.37


def _readings(pace: Pace, start: float, seconds: float, busy: float = 0.0) -> list[tuple[float, bool]]:
    """Time and slowness of each read of an agent that is busy for a while after each."""
    now = start
    reads: list[tuple[float, bool]] = []
    while True:
        now += pace.seconds_to_next(now)
        if now > start + seconds:
            return reads
        reads.append((now, pace.take(now)))
        now += busy


@pytest.mark.parametrize("interval", [0.1, 1.0, 2.5, 30.0])
def test_reads_fall_on_multiples_of_the_interval_plus_the_nodes_offset(interval: float) -> None:
    for at, _ in _readings(Pace("gpu-017", interval), NOW, 20 * interval, busy=0.3 * interval):
        beside = (at - offset_seconds("gpu-017", interval)) / interval
        assert beside == pytest.approx(round(beside), abs=1e-5)


def test_every_interval_has_one_read_however_long_a_read_takes_within_it() -> None:
    reads = _readings(Pace("gpu-017", 1.0), NOW, 100.0, busy=0.9)
    assert len(reads) == 100
    assert all(later[0] - earlier[0] == pytest.approx(1.0) for earlier, later in pairwise(reads))


def test_a_node_keeps_its_offset_between_starts() -> None:
    assert offset_seconds("gpu-017", 1.0) == offset_seconds("gpu-017", 1.0) != offset_seconds("gpu-018", 1.0)


def test_a_thousand_nodes_spread_over_the_interval() -> None:
    tenths = Counter(int(offset_seconds(f"gpu-{node:03d}", 1.0) * 10) for node in range(1000))
    assert sorted(tenths) == list(range(10))
    assert max(tenths.values()) < 140, "100 on average"


def test_after_a_stall_the_missed_points_are_skipped() -> None:
    pace = Pace("gpu-017", 1.0)
    now = NOW + pace.seconds_to_next(NOW)
    pace.take(now)
    reads = _readings(pace, now + 60.0, 5.0)
    assert len(reads) in (5, 6)
    assert all(later[0] - earlier[0] >= 0.99 for earlier, later in pairwise(reads))


def test_waking_a_little_early_does_not_read_twice() -> None:
    pace = Pace("gpu-017", 1.0)
    early = NOW + pace.seconds_to_next(NOW) - 0.004
    pace.take(early)
    assert pace.seconds_to_next(early) == pytest.approx(1.004)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_is_set_neither_stops_nor_floods_the_reads(jump: float) -> None:
    pace = Pace("gpu-017", 1.0)
    now = NOW + pace.seconds_to_next(NOW)
    pace.take(now)
    assert 0 < pace.seconds_to_next(now + jump) <= 2.0


@pytest.mark.parametrize("interval", [1.0, 30.0])
@pytest.mark.parametrize("jump", [-3600.4, -30.0, -1.5, -0.5, 0.3, 1.5, 3600.4])
def test_a_jump_in_mid_sleep_makes_one_gap_shorter_or_longer_and_no_other(jump: float, interval: float) -> None:
    pace = Pace("gpu-017", interval)
    wall, monotonic = NOW, 500.0
    read_at: list[float] = []  # by the clock that does not jump
    for number in range(20):
        seconds = pace.seconds_to_next(wall)
        wall += seconds + (jump if number == 10 else 0.0)
        monotonic += seconds
        pace.take(wall)
        read_at.append(monotonic)
    gaps = [later - earlier for earlier, later in pairwise(read_at)]
    odd = [gap for gap in gaps if gap != pytest.approx(interval)]
    assert len(odd) <= 1
    assert all(0.0 < gap < 1.51 * interval for gap in odd)


def test_the_first_read_is_slow_and_then_one_in_ten_seconds() -> None:
    reads = _readings(Pace("gpu-017", 1.0), NOW, 60.0)
    slow = [at for at, is_slow in reads if is_slow]
    assert slow[0] == reads[0][0]
    assert {round(later - earlier) for earlier, later in pairwise(slow[1:])} == {10}
    assert len(slow) in (7, 6)


def test_a_slow_read_that_falls_into_a_stall_is_made_up_for() -> None:
    pace = Pace("gpu-017", 1.0)
    _readings(pace, NOW, 3.0)
    assert pace.take(NOW + 15.0), "the grid point of the slow read passed in the stall"


def test_with_a_long_interval_every_read_is_slow() -> None:
    assert all(slow for _, slow in _readings(Pace("gpu-017", 30.0), NOW, 300.0))


def _backoff(seed: int = 1) -> Backoff:
    return Backoff(random.Random(seed))


def test_pauses_grow_from_half_a_second_to_half_a_minute() -> None:
    backoff = _backoff()
    pauses = [backoff.next_seconds() for _ in range(200)]
    assert 0.5 <= pauses[0] <= 1.0
    assert all(15.0 <= pause <= 30.0 for pause in pauses[6:])
    assert pauses[:5] == sorted(pauses[:5])


def test_pauses_differ_between_agents() -> None:
    pauses = {round(_backoff(seed).next_seconds(), 3) for seed in range(50)}
    assert len(pauses) > 40


def test_after_success_pauses_are_short_again() -> None:
    backoff = _backoff()
    for _ in range(10):
        backoff.next_seconds()
    backoff.reset()
    assert backoff.next_seconds() <= 1.0


def test_it_is_known_beforehand_whether_the_next_read_is_a_slow_one() -> None:
    pace, now = Pace("gpu-017", 1.0), NOW
    foretold: list[bool] = []
    taken: list[bool] = []
    for _ in range(25):
        foretold.append(pace.next_is_slow(now))
        now += pace.seconds_to_next(now)
        taken.append(pace.take(now))
    assert foretold == taken
    assert taken.count(True) == 3
