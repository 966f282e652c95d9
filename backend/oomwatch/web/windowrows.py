"""The times at which nobody is sent certain alerts, as alerts.yaml has them, and what each does now."""

from collections.abc import Iterable
from math import isfinite
from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.matcher import text_of
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import DAYS, MINUTES_OF_A_DAY, Day, Maintenance, QuietHours

WindowState: TypeAlias = Literal["active", "upcoming", "ended"]


class MaintenanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """`hides`: open alerts that it mutes now."""

    name: str
    state: WindowState
    match: tuple[str, ...]
    starts_at: float
    ends_at: float
    hides: int


class QuietHoursRow(msgspec.Struct, frozen=True, kw_only=True):
    """`from` and `to` are times of day in `zone`; `days` those on which they begin. `until` is null outside of them."""

    name: str
    active: bool
    match: tuple[str, ...]
    from_: str = msgspec.field(name="from")
    to: str
    days: tuple[Day, ...]
    zone: str
    until: float | None
    next_at: float | None  # when they begin next
    hides: int


class InhibitionRow(msgspec.Struct, frozen=True, kw_only=True):
    """While an alert fires that meets `source`, those that meet `target` and agree in `equal` are told to nobody."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    equal: tuple[str, ...]


class MutingWindows(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    maintenance: tuple[MaintenanceRow, ...]
    quiet_hours: tuple[QuietHoursRow, ...]
    inhibit: tuple[InhibitionRow, ...]


def rows_of(windows: Windows, open_alerts: Iterable[wire.Alert], now: float) -> MutingWindows:
    """As of now, in the file's order."""
    mutes = [(mute.kind, mute.by) for alert in open_alerts for mute in alert.muted]
    return MutingWindows(
        at=now,
        maintenance=tuple(
            [_maintenance(one, mutes.count(("maintenance", one.name)), now) for one in windows.maintenance]
        ),
        quiet_hours=tuple(
            [_quiet_hours(one, mutes.count(("quiet_hours", one.name)), now) for one in windows.quiet_hours]
        ),
        inhibit=tuple([_inhibition(one) for one in windows.inhibitions]),
    )


def _maintenance(one: Maintenance, hides: int, now: float) -> MaintenanceRow:
    state: WindowState = "ended" if one.ends_at <= now else "upcoming" if one.starts_at > now else "active"
    return MaintenanceRow(
        name=one.name,
        state=state,
        match=_texts(one.matchers),
        starts_at=one.starts_at,
        ends_at=one.ends_at,
        hides=hides,
    )


def _quiet_hours(one: QuietHours, hides: int, now: float) -> QuietHoursRow:
    until, next_at = one.until(now), one.next_start(now)
    return QuietHoursRow(
        name=one.name,
        active=until is not None,
        match=_texts(one.matchers),
        from_=_time_of_day(one.from_minute),
        to=_time_of_day(one.to_minute),
        days=tuple([DAYS[day] for day in sorted(one.days)]),
        zone=str(one.zone),
        until=until,
        next_at=next_at if isfinite(next_at) else None,
        hides=hides,
    )


def _inhibition(one: Inhibition) -> InhibitionRow:
    return InhibitionRow(source=_texts(one.source), target=_texts(one.target), equal=one.equal)


def _texts(matchers: Iterable[wire.Matcher]) -> tuple[str, ...]:
    return tuple([text_of(matcher) for matcher in matchers])


def _time_of_day(minute: int) -> str:
    return "24:00" if minute == MINUTES_OF_A_DAY else f"{minute // 60:02d}:{minute % 60:02d}"
