"""What a live run teaches the next estimate.

What follows from the configuration to the byte (weights, states, the engine's share) is right; what was judged (scores,
activations, caches, contexts) is scaled until the sum is what was measured. Within bounds: a measurement that asks for
more is of something else than the configuration says.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from oomwatch.plan.memory.estimate import Estimate, PhaseEstimate, estimated
from oomwatch.plan.memory.part import Part, total

LEAST_FACTOR, MOST_FACTOR = 0.5, 2.0
# Parts that are no further off than this are exact: they stay as they are.
_EXACT_SPREAD = 0.05


class Correction(Struct, frozen=True, kw_only=True):
    """By how much the judged parts of each phase are multiplied. A phase that was not measured is not in it."""

    factors: Mapping[str, float] = {}


def correction_of(estimate: Estimate, measured_bytes: Mapping[str, float]) -> Correction:
    """From the peaks of a run, by phase, in bytes of device memory. What is 0 or less was not measured."""
    known = (phase for phase in estimate.phases if measured_bytes.get(phase.phase, 0) > 0)
    factors = {phase.phase: _factor(phase.parts, measured_bytes[phase.phase]) for phase in known}
    return Correction(factors={phase: factor for phase, factor in factors.items() if factor is not None})


def corrected(estimate: Estimate, correction: Correction) -> Estimate:
    """The estimate as the run before it would have it."""
    phases = tuple(_corrected(phase, correction.factors.get(phase.phase)) for phase in estimate.phases)
    return msgspec.structs.replace(estimate, phases=phases)


def _factor(parts: tuple[Part, ...], measured: float) -> float | None:
    judged = total(part for part in parts if part.spread > _EXACT_SPREAD)
    if not judged:
        return None
    return min(MOST_FACTOR, max(LEAST_FACTOR, (measured - (total(parts) - judged)) / judged))


def _corrected(phase: PhaseEstimate, factor: float | None) -> PhaseEstimate:
    if factor is None:
        return phase
    parts = tuple(_scaled(part, factor) for part in phase.parts)
    return estimated(phase.phase, phase.moment, parts, phase.capacity_bytes, phase.trouble)


def _scaled(part: Part, factor: float) -> Part:
    if part.spread <= _EXACT_SPREAD:
        return part
    formula = f"{factor:.2f} x ({part.formula})"
    return msgspec.structs.replace(part, bytes=round(part.bytes * factor), formula=formula)
