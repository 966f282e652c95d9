"""A run and its plan, as the API gives them."""

from typing import Literal, TypeAlias

import msgspec

from oomwatch.plan.memory import Verdict

Stands: TypeAlias = Literal["below", "within", "above"]


class PlannedPhase(msgspec.Struct, frozen=True, kw_only=True):
    """Device memory of one phase on the fullest GPU. What was not measured is null."""

    phase: str
    moment: str  # at which the peak is expected
    low_bytes: int
    expected_bytes: int
    high_bytes: int
    verdict: Verdict
    trouble: str | None
    part: str  # the largest
    part_bytes: int
    measured_bytes: int | None  # the highest peak of this start's usual steps, of all GPUs
    stands: Stands | None
    at_lengths_bytes: int | None  # what is expected of sequences as long as those of the steps so far
    error_ratio: float | None  # of that estimate: above 0 where it said too much
    factor: float | None  # by which its judged parts are multiplied from now on
    next_bytes: int | None  # what is expected of another start, sequences as long as is allowed


class PlanOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """`why` there is none, or the plan. Bytes are of a card of which programs can use `capacity_bytes`."""

    run: str
    why: str | None = None
    capacity_bytes: int | None = None
    model: str | None = None
    parameters: int | None = None
    verdict: Verdict | None = None
    peak_phase: str | None = None
    length_tokens: float | None = None  # mean of prompt and response in the largest micro batches so far
    assumed: tuple[str, ...] = ()
    phases: tuple[PlannedPhase, ...] = ()
