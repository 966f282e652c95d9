"""What each kind of process held in a step, at moments that are alike from step to step.

A process table is read every ten seconds, and a kind holds many times as much in one phase as in another. Its least
over whatever was read of a step compares a reading of this phase with one of that, and calls the difference a growth.
So an engine is compared while it sleeps and a trainer while the rollout runs; a stranger's memory does not follow our
phases.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from oomwatch.core.phases import UNCERTAIN_SECONDS, Span

READINGS_MAX = 240  # of one step, 40 minutes of them: of a longer one every other is forgotten
AWAKE = ("rollout", "update_weights", "validation")  # the engine's weights and cache are on the card
_Sizes: TypeAlias = Mapping[str, float]  # bytes by kind
Reading: TypeAlias = tuple[float, _Sizes]  # Unix seconds


def held_in(readings: Sequence[Reading], spans: Sequence[Span]) -> Mapping[str, float | None] | None:
    """The least that each kind held at its moments of the step that had these phases. None: no table was read in it.

    A kind that is not here was in no table. None as its size: no table was read at any of its moments.
    """
    if not readings:
        return None
    kinds = dict.fromkeys(kind for _, sizes in readings for kind in sizes)
    return {kind: _least(kind, readings, _moments(kind, spans)) for kind in kinds}


def thinned(readings: Sequence[Reading]) -> list[Reading]:
    """Every other reading, once there are too many: what is left still covers the whole step."""
    return list(readings[::2] if len(readings) > READINGS_MAX else readings)


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
