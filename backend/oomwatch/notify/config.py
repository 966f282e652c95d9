"""The `notify:` section of alerts.yaml: which channels there are, who is told what, and how messages are bundled."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.core.mute.matcher import parse_matcher
from oomwatch.core.mute.stages import Windows
from oomwatch.notify import route
from oomwatch.notify.channel import Section
from oomwatch.notify.channels import ChannelConfig
from oomwatch.notify.heartbeat import HeartbeatSection
from oomwatch.notify.mutesections import (
    INHIBIT_DEFAULT,
    READERS,
    InhibitSection,
    MaintenanceSection,
    QuietHoursSection,
    windows_of,
)
from oomwatch.notify.rate import Rate, parse_rate
from oomwatch.notify.route import Condition, Place, Route, Router, Timing
from oomwatch.notify.secret import Secret
from oomwatch.units import Duration, parse_duration


class NotifyConfig(Section, frozen=True, kw_only=True):
    """`group_wait`: how long the first message of a group waits for company. `group_interval`: least time between two
    messages of a group. `repeat_interval`: a group that fires still is told again so often; 0: never."""

    language: wire.Language = "en"
    group_wait: Duration = Duration(0.05)
    group_interval: Duration = Duration(30)
    repeat_interval: Duration = Duration(4 * 3600)
    channels: tuple[ChannelConfig, ...] = ()
    route: Route | None = None
    inhibit: tuple[InhibitSection, ...] = INHIBIT_DEFAULT
    quiet_hours: tuple[QuietHoursSection, ...] = ()
    maintenance: tuple[MaintenanceSection, ...] = ()
    allow_private_addresses: bool = False  # whether names may lead to addresses that are none of the Internet (gate.py)
    heartbeat: HeartbeatSection | None = None

    def __post_init__(self) -> None:
        names = [channel.name for channel in self.channels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"two channels are called {twice[0]}; what was delivered is kept by name, so give each its own"
            )

    def router(self) -> Router:
        """Who is told what. Without routes everybody is told everything."""
        timing = Timing(float(self.group_wait), float(self.group_interval), float(self.repeat_interval))
        return Router(self.route, [channel.name for channel in self.channels], timing)

    def mistakes(self) -> Iterator[tuple[Place, str]]:
        """What is wrong between the parts of the section, each with its place in it."""
        if self.route is not None:
            for place, message in route.mistakes(self.route, [channel.name for channel in self.channels]):
                yield ("route", *place), message

    def windows(self) -> Windows:
        """When and why nobody is sent an alert, for the core."""
        return windows_of(self.inhibit, self.quiet_hours, self.maintenance)


def decode_hook(kind: type, value: object) -> object:
    """msgspec's dec_hook for the types of this section."""
    if kind is Secret:
        return Secret(_text(value).strip())
    if kind is Duration and isinstance(value, str | int | float):
        return parse_duration(value)
    if kind is Rate:
        return parse_rate(_text(value))
    if kind is Condition:
        parse_matcher(_text(value))  # refuses what cannot be read
        return Condition(value)
    if kind in READERS:
        return READERS[kind](value)
    raise NotImplementedError(f"no reader for {kind}")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"expected a text, got {type(value).__name__}")
