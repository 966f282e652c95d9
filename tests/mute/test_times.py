"""Quiet hours: by the clock on the wall, over midnight, on days of the week, and when that clock is set."""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest
from tests.mute.samples import firing, matchers

from oomwatch import wire
from oomwatch.core.mute.times import DAYS, QuietHours, QuietTimes

BERLIN = ZoneInfo("Europe/Berlin")
ALL_DAYS = frozenset(range(7))


def hours(
    start: str, end: str, days: str = " ".join(DAYS), zone: ZoneInfo | timezone = timezone.utc, name: str = "night"
) -> QuietHours:
    chosen = frozenset(DAYS.index(day) for day in days.split())
    return QuietHours(name, _minute(start), _minute(end), chosen, zone, matchers('severity!="critical"'))


def _minute(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def at(text: str, zone: ZoneInfo | timezone = timezone.utc) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def test_quiet_hours_go_over_midnight() -> None:
    night = hours("22:00", "07:00")
    assert night.until(at("2026-12-01T21:59")) is None
    assert night.until(at("2026-12-01T22:00")) == at("2026-12-02T07:00")
    assert night.until(at("2026-12-02T06:59")) == at("2026-12-02T07:00")
    assert night.until(at("2026-12-02T07:00")) is None


def test_quiet_hours_within_a_day_end_on_it() -> None:
    noon = hours("12:00", "13:30")
    assert noon.until(at("2026-12-01T13:29")) == at("2026-12-01T13:30")
    assert noon.until(at("2026-12-01T11:59")) is None


def test_the_day_of_quiet_hours_is_the_one_on_which_they_begin() -> None:
    friday_night = hours("22:00", "07:00", "fri")
    assert friday_night.until(at("2026-12-04T22:00")) == at("2026-12-05T07:00")
    assert friday_night.until(at("2026-12-05T03:00")) == at("2026-12-05T07:00")
    assert friday_night.until(at("2026-12-04T03:00")) is None
    assert friday_night.until(at("2026-12-05T22:00")) is None


def test_a_whole_day_can_be_quiet() -> None:
    sunday = hours("00:00", "24:00", "sun")
    assert sunday.until(at("2026-12-06T00:00")) == at("2026-12-07T00:00")
    assert sunday.until(at("2026-12-07T00:00")) is None


def test_quiet_hours_are_those_of_their_time_zone() -> None:
    night = hours("22:00", "07:00", zone=ZoneInfo("Asia/Shanghai"))
    assert night.until(at("2026-12-01T14:00")) == at("2026-12-01T23:00")


def test_a_night_in_which_the_clock_is_set_back_is_an_hour_longer() -> None:
    night = hours("22:00", "07:00", zone=BERLIN)
    start, end = at("2026-10-24T22:00", BERLIN), at("2026-10-25T07:00", BERLIN)
    assert end - start == 10 * 3600
    assert [night.until(moment) for moment in (start, end - 1, end)] == [end, end, None]


def test_a_night_in_which_the_clock_is_set_forward_is_an_hour_shorter() -> None:
    night = hours("22:00", "07:00", zone=BERLIN)
    start, end = at("2026-03-28T22:00", BERLIN), at("2026-03-29T07:00", BERLIN)
    assert end - start == 8 * 3600
    assert [night.until(moment) for moment in (start, end - 1, end)] == [end, end, None]


def test_a_time_that_comes_twice_is_its_first_one() -> None:
    until_half_past_two = hours("22:00", "02:30", zone=BERLIN)
    first = at("2026-10-25T00:30")  # UTC: 02:30 by summer time, an hour before it comes again
    assert until_half_past_two.until(first - 1) == first
    assert until_half_past_two.until(first) is None


def test_a_time_that_is_left_out_is_as_much_later_as_the_clock_is_set() -> None:
    early = hours("02:30", "05:00", zone=BERLIN)
    start = at("2026-03-29T03:30", BERLIN)
    assert early.until(start - 1) is None
    assert early.until(start) == at("2026-03-29T05:00", BERLIN)


@pytest.mark.parametrize(
    ("now", "edge"),
    [
        ("2026-12-01T12:00", "2026-12-04T22:00"),
        ("2026-12-04T22:00", "2026-12-05T07:00"),
        ("2026-12-05T07:00", "2026-12-11T22:00"),
    ],
)
def test_quiet_hours_say_when_they_begin_or_end_next(now: str, edge: str) -> None:
    assert QuietTimes([hours("22:00", "07:00", "fri")]).next_edge(at(now)) == at(edge)


def test_quiet_hours_mute_what_they_match_and_name_those_that_end_last() -> None:
    times = QuietTimes([hours("22:00", "06:00", name="short"), hours("22:00", "07:00", name="long")])
    now = at("2026-12-01T23:00")
    assert times.mutes(firing(), now) == wire.Mute(kind="quiet_hours", by="long", until=at("2026-12-02T07:00"))
    assert times.mutes(firing(severity="critical"), now) is None
    assert times.mutes(firing(), at("2026-12-01T12:00")) is None
