"""Downsampling keeps every peak, and a gap stays a gap."""

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch.store.buckets import MAX_POINTS, Buckets

NAN = float("nan")
values_at = st.lists(st.tuples(st.integers(0, 100_000), st.floats(-1e6, 1e6)), min_size=1, max_size=60)


def means(buckets: Buckets, *, with_gaps: bool = True) -> list[tuple[float, float | None]]:
    points = buckets.points(with_gaps=with_gaps)
    return [(at, None if point is None else point.total / point.count) for at, point in points]


@given(values_at, st.integers(1, 40))
def test_least_and_greatest_of_all_survive_any_step(pairs: list[tuple[int, float]], step: int) -> None:
    pairs.sort()
    buckets = Buckets(0, 100, step)
    buckets.add([at for at, _ in pairs], [value for _, value in pairs])
    points = [point for _, point in buckets.points(with_gaps=False) if point]
    assert max(point.high for point in points) == max(value for _, value in pairs)
    assert min(point.low for point in points) == min(value for _, value in pairs)
    assert sum(point.count for point in points) == len(pairs)


@given(values_at, st.integers(1, 40), st.integers(0, 60))
def test_parts_that_overlap_give_what_one_part_would(pairs: list[tuple[int, float]], step: int, cut: int) -> None:
    whole, parted = Buckets(0, 100, step), Buckets(0, 100, step)
    for buckets, parts in ((whole, [pairs]), (parted, [pairs[cut:], pairs[:cut]])):
        for part in parts:
            ordered = sorted(part)
            buckets.add([at for at, _ in ordered], [value for _, value in ordered])
    assert [(at, p and (p.low, p.high, p.count)) for at, p in whole.points(with_gaps=True)] == [
        (at, p and (p.low, p.high, p.count)) for at, p in parted.points(with_gaps=True)
    ]


def test_a_bucket_holds_what_is_at_its_beginning_and_not_what_is_at_its_end() -> None:
    buckets = Buckets(0, 60, 10)
    buckets.add([0, 9_999, 10_000], [1.0, 3.0, 7.0])
    assert means(buckets) == [(0.0, 2.0), (10.0, 7.0)]


def test_what_is_outside_the_range_is_left_out_and_both_ends_are_in() -> None:
    buckets = Buckets(10, 20, 1)
    buckets.add([9_999, 10_000, 20_000, 20_001], [1.0, 2.0, 3.0, 4.0])
    assert means(buckets, with_gaps=False) == [(10.0, 2.0), (20.0, 3.0)]


def test_a_gap_is_none_between_values_and_nothing_stands_before_the_first_or_after_the_last() -> None:
    buckets = Buckets(0, 100, 10)
    buckets.add(array("q", [20_000, 30_000, 50_000, 70_000]), array("f", [1.0, NAN, 2.0, NAN]))
    assert means(buckets) == [(20.0, 1.0), (30.0, None), (40.0, None), (50.0, 2.0)]
    assert means(buckets, with_gaps=False) == [(20.0, 1.0), (50.0, 2.0)]


def test_missing_values_do_not_spoil_their_bucket() -> None:
    buckets = Buckets(0, 10, 10)
    buckets.add([1, 2, 3], [NAN, 4.0, NAN])
    assert means(buckets) == [(0.0, 4.0)]


def test_nothing_gives_no_points() -> None:
    assert Buckets(0, 100, 10).points(with_gaps=True) == []


def test_buckets_stay_where_they_are_when_the_range_moves() -> None:
    times = list(range(0, 100_000, 500))
    first, second = Buckets(0, 60, 7), Buckets(5, 65, 7)
    for buckets in (first, second):
        buckets.add(times, [1.0] * len(times))
    assert {at for at, _ in second.points(with_gaps=True)} - {at for at, _ in first.points(with_gaps=True)} == {63.0}


@pytest.mark.parametrize("days", [1, 30, 365])
def test_a_step_that_gives_too_many_points_is_raised(days: int) -> None:
    end = 86_400.0 * days + 0.5
    buckets = Buckets(0.5, end, 1)
    width = round(buckets.step_seconds * 1000)
    times = list(range(500, round(end * 1000) + 1, width))
    buckets.add(times, [1.0] * len(times))
    points = buckets.points(with_gaps=True)
    assert MAX_POINTS * 0.7 < len(points) <= MAX_POINTS
    assert {round(after - before, 3) for (before, _), (after, _) in pairwise(points)} == {buckets.step_seconds}


def test_a_step_that_is_long_enough_stays() -> None:
    assert Buckets(0, 3600, 0.75).step_seconds == 0.75


@pytest.mark.parametrize(
    ("start", "end", "step", "wrong"),
    [
        (10, 5, 1, "end must not be before start"),
        (-1, 5, 1, "range"),
        (NAN, 5, 1, "range"),
        (0, float("inf"), 1, "range"),
        (0, 5, 0, "step must be more than 0"),
        (0, 5, NAN, "step"),
    ],
)
def test_a_range_that_is_none_is_refused(start: float, end: float, step: float, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        Buckets(start, end, step)
