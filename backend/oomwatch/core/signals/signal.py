"""A signal: of which kind of subject, in which unit, how it is computed from the fleet, and when it is unknown."""

from collections.abc import Callable
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.window import Window


class Peaks(NamedTuple):
    """The peaks of a signal, oldest first: of training steps, or of blocks of five minutes where no steps are told."""

    values: list[float]
    of_steps: bool


class Signal(NamedTuple):
    """`read` gives the value at a time, or None; `explain` the facts named in `facts`, where the value is known."""

    scopes: tuple[Scope, ...]
    unit: str
    about: str
    read: Callable[[Fleet, Subject, float], float | None]
    hears: tuple[News, ...]  # what can change it
    facts: tuple[str, ...] = ()
    explain: Callable[[Fleet, Subject], dict[str, wire.Fact]] = lambda _fleet, _subject: {}
    window: Callable[[Fleet, Subject], Window | None] | None = None  # for conditions that look back over time
    ceiling: Callable[[Fleet, Subject, float], float | None] | None = None  # what the signal cannot exceed, if known
    step_value: Callable[[wire.Step], float | None] | None = None  # for conditions that look back over steps
    peaks: Callable[[Fleet, Subject], Peaks] | None = None  # for conditions that ask whether it still gets worse
    predicts: Channel | None = None  # what a high value says will run full
    topic: Topic | None = None  # what an alert of it is about; None where it has no cause in a memory
    # Of one that only news changes, until it is too old to be known: whether it is not. None: time changes it too.
    is_fresh: Callable[[Fleet, Subject, float], bool] | None = None

    def check_bound(self, name: str, bound: float) -> None:
        """Raises ValueError for a bound that the signal can never cross: 85 for a share, a negative size."""
        if self.unit == "ratio" and not 0 <= bound <= 1:
            raise ValueError(f"{name}: {bound:g} is no share; write 85% or 0.85")
        if self.unit not in ("ratio", "celsius") and bound < 0:
            raise ValueError(f"{name}: {bound:g} is below zero, where this metric never is")
