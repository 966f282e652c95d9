"""The reasons not to send word of an alert, in the order in which they are looked at and told."""

from collections.abc import Sequence
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.muter import Firing, Muter
from oomwatch.core.mute.silence import Silences
from oomwatch.core.mute.times import Maintenance, Maintenances, QuietHours, QuietTimes


class Windows(NamedTuple):
    """What alerts.yaml says of muting."""

    maintenance: tuple[Maintenance, ...] = ()
    quiet_hours: tuple[QuietHours, ...] = ()
    inhibitions: tuple[Inhibition, ...] = ()


class Stages(NamedTuple):
    """Stages, in their order. An alert is muted where one of them says so; all that do are told."""

    muters: tuple[Muter, ...]

    def mutes(self, alert: Firing, now: float) -> tuple[wire.Mute, ...]:
        found = [muter.mutes(alert, now) for muter in self.muters]
        return tuple([mute for mute in found if mute is not None])

    def next_edge(self, now: float) -> float:
        """The first moment after `now` at which time alone may change an answer."""
        return min(muter.next_edge(now) for muter in self.muters)


def timed_stages(windows: Windows, silences: Sequence[wire.Silence]) -> Stages:
    """All but inhibition, the last one: what they say of an alert stays until an edge, whatever else fires."""
    return Stages((Silences(silences), Maintenances(windows.maintenance), QuietTimes(windows.quiet_hours)))
