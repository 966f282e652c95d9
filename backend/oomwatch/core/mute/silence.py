"""Silences: a person's word that nobody is to be sent certain alerts for a time."""

from collections.abc import Sequence
from math import inf

from oomwatch import wire
from oomwatch.core.mute.matcher import matches
from oomwatch.core.mute.muter import Firing


def in_force(silence: wire.Silence, now: float) -> bool:
    return silence.starts_at <= now < silence.ends_at


class Silences:
    """Those that are in force or yet to come. Of several that fit, the one that ends last is named."""

    def __init__(self, silences: Sequence[wire.Silence]) -> None:
        self._silences = sorted(silences, key=lambda silence: (-silence.ends_at, silence.id))

    def mutes(self, alert: Firing, now: float) -> wire.Mute | None:
        for silence in self._silences:
            if in_force(silence, now) and matches(silence.matchers, alert.labels):
                return wire.Mute(kind="silence", by=silence.id, until=silence.ends_at, note=silence.note)
        return None

    def next_edge(self, now: float) -> float:
        edges = (edge for silence in self._silences for edge in (silence.starts_at, silence.ends_at))
        return min((edge for edge in edges if edge > now), default=inf)
