"""Peaks of what a host uses, and whose memory grew."""

import random
from collections.abc import Mapping, Sequence

import pytest

from oomwatch import wire
from oomwatch.core.growth import growth, line
from oomwatch.core.hosthistory import FINE_KEPT_SECONDS, PROCESSES_KEPT, HostHistory, PeakRow, Peaks, Span

GIB = 2**30


def each(peaks: Peaks, spans: Sequence[Span], known: Mapping[Span, float] | None = None) -> list[float]:
    return list(peaks.each(spans, known or {}).values())


def test_the_highest_reading_of_a_span_is_its_peak() -> None:
    peaks = Peaks()
    for second in range(100):
        peaks.add(1000.0 + second, 50.0 if second == 37 else 10.0)
    assert each(peaks, [(1000.0, 1030.0), (1030.0, 1060.0), (1060.0, 1100.0)]) == [10.0, 50.0, 10.0]


def test_a_span_without_readings_has_no_peak() -> None:
    peaks = Peaks()
    peaks.add(1000.0, 5.0)
    assert each(peaks, [(0.0, 500.0), (980.0, 1020.0), (1020.0, 1060.0)]) == [5.0]


def test_a_late_reading_goes_where_it_belongs_and_one_that_is_too_late_nowhere() -> None:
    row = PeakRow(10.0, 100.0)
    for at, value in ((1000.0, 1.0), (1050.0, 2.0), (1020.0, 9.0), (900.0, 99.0)):
        row.add(at, value)
    assert row.peak(1020.0, 1030.0) == 9.0
    assert row.peak(0.0, 2000.0) == 9.0


def test_passing_over_what_is_no_new_peak_changes_nothing() -> None:
    dice, peaks, rows = random.Random(1), Peaks(), (PeakRow(10.0, 10800.0), PeakRow(60.0, 86400.0))
    at = 100_000.0
    for _ in range(20_000):
        at += dice.choice((0.5, 1.0, 1.0, 1.0, 30.0))
        if dice.random() < 0.001:
            shifted = dice.choice((-3.0, 7.0, 3600.0))
            at += shifted
            for one in (peaks, *rows):
                one.shift(shifted)
        moment, value = at - dice.choice((0.0, 0.0, 0.0, 12.0)), float(dice.randrange(1000))
        for one in (peaks, *rows):
            one.add(moment, value)
    spans = [(end - length, end) for end in range(int(at) - 9000, int(at), 300) for length in (20.0, 300.0)]
    by_rows = {(start, end): rows[end - start >= 90.0].peak(start, end) for start, end in spans}
    assert peaks.each(spans, {}) == {span: peak for span, peak in by_rows.items() if peak is not None}


def test_after_a_long_silence_nothing_old_is_left() -> None:
    row = PeakRow(10.0, 100.0)
    row.add(1000.0, 7.0)
    row.add(5000.0, 1.0)
    assert row.peak(0.0, 4990.0) is None
    assert row.peak(0.0, 6000.0) == 1.0


def test_long_spans_are_known_for_a_day_and_short_ones_for_hours() -> None:
    peaks = Peaks()
    for minute in range(24 * 60):
        peaks.add(60.0 * minute, float(minute))
    long_ago = 60.0 * 60
    assert each(peaks, [(long_ago, long_ago + 300)]) == [64.0]
    assert each(peaks, [(long_ago, long_ago + 60)]) == []
    assert FINE_KEPT_SECONDS > 3600


def test_what_had_no_reading_at_first_is_looked_up_again() -> None:
    peaks = Peaks()
    spans = [(1000.0, 1100.0), (1100.0, 1200.0)]
    peaks.add(1150.0, 3.0)
    known = peaks.each(spans, {})
    assert known == {spans[1]: 3.0}
    peaks.add(1040.0, 8.0)
    assert each(peaks, spans, known) == [8.0, 3.0]


def test_what_is_known_of_a_span_is_not_looked_up_again() -> None:
    peaks = Peaks()
    peaks.add(1040.0, 8.0)
    assert each(peaks, [(1000.0, 1100.0)], {(1000.0, 1100.0): 7.0}) == [7.0]


def test_the_times_move_with_the_clock() -> None:
    history = HostHistory()
    history.observe(wire.HostSample(memory_used_bytes=GIB), 1000.0)
    history.shift(-500.0)
    peaks = history.of("machine")
    assert peaks is not None
    assert each(peaks, [(495.0, 515.0)]) == [GIB]
    assert history.of("shm") is None


def test_a_span_of_time_is_complete_with_the_first_reading_of_the_next() -> None:
    history = HostHistory()
    told = [history.observe(wire.HostSample(memory_used_bytes=1), at) for at in (890.0, 899.0, 900.0, 910.0, 880.0)]
    assert told == [False, False, True, False, False]


def processes(**sizes: float) -> wire.HostSample:
    listed = enumerate(sizes.items(), start=1)
    return wire.HostSample(
        processes=tuple(wire.HostProcess(pid=pid, name=name, rss_bytes=round(gib * GIB)) for pid, (name, gib) in listed)
    )


def test_the_process_that_grew_most_is_found() -> None:
    history = HostHistory()
    for minute in range(30):
        history.observe(processes(big=200, driver=10 + minute, helper=3 + minute / 10), 60.0 * minute)
    grower = history.grower(0.0, 29 * 60.0)
    assert grower is not None
    assert (grower.name, grower.pid) == ("driver", 2)
    assert grower.growth_bytes == pytest.approx(28 * GIB, abs=GIB)


def test_one_that_came_in_between_counts_with_all_it_has_and_one_that_went_not_at_all() -> None:
    history = HostHistory()
    for minute in range(30):
        sizes = {"worker": 200.0, "old": 50.0 + minute} if minute < 15 else {"worker": 200.0, "new": 30.0}
        history.observe(processes(**sizes), 60.0 * minute)
    grower = history.grower(0.0, 29 * 60.0)
    assert grower is not None
    assert grower.name == "new"


def test_no_growth_is_nobodys() -> None:
    history = HostHistory()
    for minute in range(30):
        history.observe(processes(worker=200), 60.0 * minute)
    assert history.grower(0.0, 29 * 60.0) is None


def test_processes_that_come_and_go_do_not_pile_up() -> None:
    history = HostHistory()
    for pid in range(500):
        one = wire.HostProcess(pid=pid, name="short", rss_bytes=GIB)
        history.observe(wire.HostSample(processes=(one,)), float(pid))
    assert len(history._processes) == PROCESSES_KEPT


def test_a_line_through_a_straight_rise_is_that_rise() -> None:
    straight = line([10.0 + 2 * index for index in range(12)])
    assert (straight.slope, straight.level) == (2.0, 32.0)
    assert straight.p < 1e-6


def test_how_many_more_peaks_there_are_to_the_limit() -> None:
    found = growth([100.0 + 2 * index for index in range(40)], 200.0)
    assert found is not None
    assert found.left == pytest.approx((200 - 178) / 2)


def test_a_limit_further_ahead_than_can_be_seen_is_not_told_of() -> None:
    assert growth([100.0 + index for index in range(40)], 1000.0) is None
