"""What each kind of process held in a step, at moments that are alike from step to step.

A process table is read every ten seconds, and a kind holds many times as much in one phase as in another. Its least
over whatever was read of a step compares a reading of this phase with one of that, and calls the difference a growth.
So an engine is compared while it sleeps and a trainer while the rollout runs; a stranger's memory does not follow our
phases.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from oomwatch.core.phases import UNCERTAIN_SECONDS, Span

READINGS_MAX = 240  # of one step, 40 minutes of them: of a longer one every other is forgotten
READINGS_FEW = 60  # while no step has been told
AWAKE = ("rollout", "update_weights", "validation")  # the engine's weights and cache are on the card
_Sizes: TypeAlias = Mapping[str, float]  # bytes by kind
Reading: TypeAlias = tuple[float, _Sizes]  # Unix seconds


class Tables:
    """What each kind held whenever a table of processes was read. In columns: a reading takes some 24 bytes.

    Once there are too many, every other one is forgotten: what is left still covers the whole step.
    """

    __slots__ = ("_at", "_held", "_readings_max")

    def __init__(self, readings_max: int = READINGS_MAX) -> None:
        self._readings_max = readings_max
        self._at = array("d")
        self._held: dict[str, array[float]] = {}  # by kind; nothing where it was in no table

    def __len__(self) -> int:
        return len(self._at)

    def add(self, at: float, sizes: _Sizes) -> None:
        for kind in sizes:
            if kind not in self._held:
                self._held[kind] = array("d", [0.0]) * len(self._at)
        self._at.append(at)
        for kind, column in self._held.items():
            column.append(sizes.get(kind, 0.0))
        if len(self._at) > self._readings_max:
            self._at = self._at[::2]
            self._held = {kind: column[::2] for kind, column in self._held.items()}

    def within(self, start: float, end: float) -> list[Reading]:
        """Those of [start, end]."""
        return [self._reading(place) for place, at in enumerate(self._at) if start <= at <= end]

    def after(self, end: float) -> "Tables":
        """Those that are later."""
        later = Tables()
        for place, at in enumerate(self._at):
            if at > end:
                later.add(*self._reading(place))
        return later

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._at = array("d", [at + seconds for at in self._at])

    def _reading(self, place: int) -> Reading:
        return self._at[place], {kind: column[place] for kind, column in self._held.items() if column[place]}


def held_in(readings: Sequence[Reading], spans: Sequence[Span]) -> Mapping[str, float | None] | None:
    """The least that each kind held at its moments of the step that had these phases. None: no table was read in it.

    A kind that is not here was in no table. None as its size: no table was read at any of its moments.
    """
    if not readings:
        return None
    kinds = dict.fromkeys(kind for _, sizes in readings for kind in sizes)
    return {kind: _least(kind, readings, _moments(kind, spans)) for kind in kinds}


def _moments(kind: str, spans: Sequence[Span]) -> list[tuple[float, float]] | None:
    """The stretches of time at which a kind may be compared; None: at any time, or nothing tells them apart."""
    if kind == "engine":
        return _inside(one for one in spans if one.phase not in AWAKE) if spans else None
    rollouts = [one for one in spans if one.phase == "rollout"]
    return _inside(rollouts) if kind == "trainer" and rollouts else None


def _inside(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """Their stretches, those that touch as one, without what lies close to a cut that only a step line told."""
    joined: list[Span] = []
    for one in spans:
        if joined and one.start - joined[-1].end <= 0 and one.how == joined[-1].how:
            joined[-1] = joined[-1]._replace(end=one.end)
        else:
            joined.append(one)
    margins = ((one, UNCERTAIN_SECONDS if one.how == "step line" else 0.0) for one in joined)
    return [(one.start + margin, one.end - margin) for one, margin in margins]


def _least(kind: str, readings: Sequence[Reading], moments: list[tuple[float, float]] | None) -> float | None:
    """One that is not in a table holds nothing then."""
    sizes = (
        sizes.get(kind, 0.0)
        for at, sizes in readings
        if moments is None or any(start <= at <= end for start, end in moments)
    )
    return min(sizes, default=None)
