"""What a reason not to send word of an alert is: one method that says so, one that says when that may change."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from oomwatch import wire
from oomwatch.core.mute.matcher import labels_of


class Firing(NamedTuple):
    """An alert that fires, as muters see it."""

    id: str
    labels: Mapping[str, str]  # matcher.labels_of


class Muter(Protocol):
    """One stage. Its answer depends on the alert, the time, and what it was made of."""

    def mutes(self, alert: Firing, now: float) -> wire.Mute | None:
        """Why nobody is sent word of this alert now; None where this is no reason."""
        ...

    def next_edge(self, now: float) -> float:
        """The first moment after `now` at which time alone may change an answer; infinite where it never does."""
        ...


def firing_of(told: wire.Transition) -> Firing:
    return Firing(told.id, labels_of(told))
