"""Times at which nobody is sent certain alerts: planned maintenance once, quiet hours on days of the week.

Quiet hours are told by the clock on the wall, whose time zone is given from outside: the core reads no files. Where
that clock is set back, a time that comes twice is its first one; where it is set forward, a time that is left out is
as much later as the clock is set.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta, tzinfo  # noqa: TID251 - dates are what this is about; no clock
from math import inf
from typing import Literal, NamedTuple, TypeAlias, get_args

from oomwatch import wire
from oomwatch.core.mute.matcher import matches
from oomwatch.core.mute.muter import Firing

Day: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
MINUTES_OF_A_DAY = 1440
_WEEK = 7


class Maintenance(NamedTuple):
    """From one moment to another, Unix seconds."""

    name: str
    starts_at: float
    ends_at: float
    matchers: tuple[wire.Matcher, ...]


class QuietHours(NamedTuple):
    """From one minute of the day to another, which is of the next day where it is not later. `days`: of the beginning.

    Minutes count from midnight, up to 1440; days are DAYS' indices.
    """

    name: str
    from_minute: int
    to_minute: int
    days: frozenset[int]
    zone: tzinfo
    matchers: tuple[wire.Matcher, ...]

    def until(self, now: float) -> float | None:
        """When the hours that `now` is in are over; None outside of them."""
        return next((end for start, end in self._around(now) if start <= now < end), None)

    def next_start(self, now: float) -> float:
        """When they begin next; inf where they never do."""
        return min((start for start, _ in self._around(now) if start > now), default=inf)

    def next_edge(self, now: float) -> float:
        """When they begin or end next."""
        return min((edge for both in self._around(now) for edge in both if edge > now), default=inf)

    def _around(self, now: float) -> Iterator[tuple[float, float]]:
        """Beginning and end of those that may go on, and of a week of others."""
        today = datetime.fromtimestamp(now, self.zone).date()
        for offset in range(-1, _WEEK + 1):
            day = today + timedelta(days=offset)
            if day.weekday() in self.days:
                days_later = 0 if self.to_minute > self.from_minute else MINUTES_OF_A_DAY
                yield self._moment(day, self.from_minute), self._moment(day, self.to_minute + days_later)

    def _moment(self, day: date, minute: int) -> float:
        on_the_wall = datetime.combine(day, time()) + timedelta(minutes=minute)
        return on_the_wall.replace(tzinfo=self.zone).timestamp()


class Maintenances:
    """Of several windows that fit, the one that ends last is named."""

    def __init__(self, windows: Sequence[Maintenance]) -> None:
        self._windows = sorted(windows, key=lambda window: -window.ends_at)

    def mutes(self, alert: Firing, now: float) -> wire.Mute | None:
        for window in self._windows:
            if window.starts_at <= now < window.ends_at and matches(window.matchers, alert.labels):
                return wire.Mute(kind="maintenance", by=window.name, until=window.ends_at)
        return None

    def next_edge(self, now: float) -> float:
        edges = (edge for window in self._windows for edge in (window.starts_at, window.ends_at))
        return min((edge for edge in edges if edge > now), default=inf)


class QuietTimes:
    """Of several quiet hours that fit, those that end last are named."""

    def __init__(self, hours: Sequence[QuietHours]) -> None:
        self._hours = tuple(hours)

    def mutes(self, alert: Firing, now: float) -> wire.Mute | None:
        fitting = [one for one in self._hours if matches(one.matchers, alert.labels)]
        going_on = [(until, one.name) for one in fitting if (until := one.until(now)) is not None]
        if not going_on:
            return None
        until, name = max(going_on)
        return wire.Mute(kind="quiet_hours", by=name, until=until)

    def next_edge(self, now: float) -> float:
        return min((one.next_edge(now) for one in self._hours), default=inf)
