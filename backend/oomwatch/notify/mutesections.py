"""The sections of `notify:` that say when and why nobody is sent an alert: inhibit, quiet_hours, maintenance."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from msgspec import field

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.matcher import LABELS
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import DAYS, MINUTES_OF_A_DAY, Day, Maintenance, QuietHours
from oomwatch.notify.channel import Section
from oomwatch.notify.route import Condition

YEARS = (1970, 9000)  # what times of the wire can be, and every calendar can show
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class ClockTime(int):
    """A time of day, written "22:00", in minutes after midnight; "24:00" is the end of the day."""

    __slots__ = ()


class Moment(float):
    """Unix seconds, written as ISO 8601 with an offset."""

    __slots__ = ()


class InhibitSection(Section, frozen=True, kw_only=True):
    """core.mute.inhibition.Inhibition."""

    source: tuple[Condition, ...]
    target: tuple[Condition, ...]
    equal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.source or not self.target:
            raise ValueError("source and target need at least one matcher each")
        unknown = [name for name in self.equal if name not in LABELS]
        if unknown:
            raise ValueError(f'equal: an alert has no label "{unknown[0]}"; known are {", ".join(LABELS)}')

    def value(self) -> Inhibition:
        return Inhibition(_matchers(self.source), _matchers(self.target), self.equal)


class QuietHoursSection(Section, frozen=True, kw_only=True):
    """core.mute.times.QuietHours. `to` is of the next day where it is not later than `from`."""

    name: wire.Name
    from_: ClockTime = field(name="from")
    to: ClockTime
    time_zone: ZoneInfo
    days: tuple[Day, ...] = DAYS
    match: tuple[Condition, ...] = (Condition('severity!="critical"'),)

    def __post_init__(self) -> None:
        if self.from_ == self.to:
            raise ValueError('from and to are the same time; a whole day is from "00:00" to "24:00"')
        if self.from_ == MINUTES_OF_A_DAY:
            raise ValueError('from cannot be "24:00"; write "00:00" and the next day')
        if not self.days or not self.match:
            raise ValueError(f"{'match' if self.days else 'days'} is empty, so that this would never mute anything")

    def value(self) -> QuietHours:
        days = frozenset([DAYS.index(day) for day in self.days])
        return QuietHours(self.name, int(self.from_), int(self.to), days, self.time_zone, _matchers(self.match))


class MaintenanceSection(Section, frozen=True, kw_only=True):
    """core.mute.times.Maintenance."""

    name: wire.Name
    from_: Moment = field(name="from")
    to: Moment
    match: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if self.to <= self.from_:
            raise ValueError("to must be later than from")
        if not self.match:
            raise ValueError("match is empty: say which alerts the maintenance is about")

    def value(self) -> Maintenance:
        return Maintenance(self.name, float(self.from_), float(self.to), _matchers(self.match))


# A graver alert about the same subject says all that a lesser one would; of a silent node nothing more is known.
INHIBIT_DEFAULT = (
    InhibitSection(
        source=(Condition('severity="critical"'),),
        target=(Condition('severity=~"warning|info"'),),
        equal=("node", "gpu", "run"),
    ),
    InhibitSection(
        source=(Condition('alert="agent_silent"'),),
        target=(Condition('alert!="agent_silent"'),),
        equal=("node",),
    ),
)


def windows_of(
    inhibit: tuple[InhibitSection, ...],
    quiet_hours: tuple[QuietHoursSection, ...],
    maintenance: tuple[MaintenanceSection, ...],
) -> Windows:
    """What the core is given of these sections."""
    return Windows(
        maintenance=tuple([one.value() for one in maintenance]),
        quiet_hours=tuple([one.value() for one in quiet_hours]),
        inhibitions=tuple([one.value() for one in inhibit]),
    )


def _matchers(conditions: Iterable[Condition]) -> tuple[wire.Matcher, ...]:
    return tuple([condition.matcher for condition in conditions])


# ---------------------------------------------------------------- reading


def decode_clock_time(value: object) -> ClockTime:
    """Raises ValueError with a sentence. YAML reads 22:00 without quotation marks as 22 times 60."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MINUTES_OF_A_DAY:
        return ClockTime(value)
    if value == "24:00":
        return ClockTime(MINUTES_OF_A_DAY)
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f'"{value}" is no time of day; write for example "22:00"')
    return ClockTime(int(found[1]) * 60 + int(found[2]))


def decode_moment(value: object) -> Moment:
    """Raises ValueError with a sentence."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(_with_offset(str(value)))
    except ValueError:
        raise ValueError(f'"{value}" is no moment; write for example "2026-12-01T20:00:00+01:00"') from None
    if moment.tzinfo is None:
        raise ValueError(f'of which time zone is "{value}"? Add its offset, such as +01:00, or Z for UTC')
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise ValueError(f'"{value}" is no moment of the years {YEARS[0]} to {YEARS[1]}')
    return Moment(moment.timestamp())


def _with_offset(text: str) -> str:
    """Python before 3.11 does not read the Z."""
    return text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text


def decode_time_zone(value: object) -> ZoneInfo:
    """Raises ValueError with a sentence."""
    try:
        return ZoneInfo(str(value))
    except (KeyError, ValueError, OSError):
        raise ValueError(f'unknown time zone "{value}"; {_zone_hint(str(value))}') from None


def _zone_hint(value: str) -> str:
    known = available_timezones()
    if not known:
        return "this machine has no time zones: install the package tzdata"
    close = get_close_matches(value, sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else "write a name such as Europe/Berlin, Asia/Shanghai or UTC"


READERS: Mapping[type, Callable[[object], object]] = {
    ClockTime: decode_clock_time,
    Moment: decode_moment,
    ZoneInfo: decode_time_zone,
}
