"""The series that are followed from step to step: a phase's peaks, and the lengths that may drive them."""

from collections.abc import Sequence

from oomwatch.core.forecast import Forecast, Lengths, forecast
from oomwatch.core.peaks import GpuStep

Told = list[tuple[float, GpuStep]]  # a peak, and the step that it is of
WHOLE_STEP = "step"  # instead of a phase, where none is known
UNEXPLAINED_STEPS, EXPLAINED_RATIO = 6, 1.01


def first_full(steps: Sequence[GpuStep], usable_bytes: int, cap_tokens: float | None) -> tuple[str, Forecast] | None:
    """Of all phases the one whose peaks reach the card's end first. `steps` are usual ones, oldest first."""
    found = [
        (phase, one)
        for phase, told in by_phase(steps).items()
        if (one := forecast([peak for peak, _ in told], usable_bytes, lengths_of(told, cap_tokens))) is not None
    ]
    return min(found, key=lambda one: one[1].eta_steps, default=None)


def by_phase(steps: Sequence[GpuStep]) -> dict[str, Told]:
    """The peaks of each phase; of whole steps where no phase explains them; torch's own maximum where all is dark."""
    told: dict[str, Told] = {}
    for step in steps:
        for phase, peak_bytes in step.phases.peaks_by_name():
            told.setdefault(phase, []).append((peak_bytes, step))
    whole = [(step.peak_bytes, step) for step in steps if step.peak_bytes is not None]
    if told and all(_is_explained(step) for _, step in whole[-UNEXPLAINED_STEPS:]):
        return told
    if told:
        return told | {WHOLE_STEP: whole}
    lifetime = [(step.lifetime_peak_bytes, step) for step in steps if step.lifetime_peak_bytes is not None]
    return {WHOLE_STEP: whole or lifetime}


def _is_explained(step: GpuStep) -> bool:
    """Whether one of the phases has the step's peak; else it was in one too short to be told apart."""
    return (step.peak_bytes or 0.0) <= EXPLAINED_RATIO * max(step.phases.peaks, default=0.0)


def lengths_of(told: Told, cap_tokens: float | None) -> list[Lengths]:
    """What may drive these peaks, as far as every step tells it."""
    steps = [step for _, step in told]
    longest = [step.length_max_tokens for step in steps if step.length_max_tokens is not None]
    mean = [step.length_mean_tokens for step in steps if step.length_mean_tokens is not None]
    total = [step.tokens_total for step in steps if step.tokens_total is not None]
    known = ((longest, cap_tokens), (mean, cap_tokens), (total, None))
    return [Lengths(tokens, cap) for tokens, cap in known if len(tokens) == len(steps)]
