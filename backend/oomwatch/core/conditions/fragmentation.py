"""What torch has reserved and does not use is a large part of the card, and grows."""

from collections.abc import Sequence
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.drift import LONG_STEPS, drift
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.held import held_on
from oomwatch.core.lives import RunNews
from oomwatch.core.peaks import usual_of
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Quantity

GROWN_RATIO = 0.05  # of the card, within the window: what is less is no growth to speak of
HORIZON_STEPS = 100  # and what does not fill the card within so many is no danger
PEAK_STEPS = 3  # the card counts as full by the highest of so many


class Fragmentation(
    Kind,
    frozen=True,
    kw_only=True,
    tag="fragmentation",
    cache_hash=True,
):
    """{kind: fragmentation, above: 15%, peak_above: 80%}

    Compared is the smallest slack (reserved minus allocated) of each step, shares of the card. What a sleeping engine
    leaves counted is no slack: steps in which torch counts more than the device has in use are left out.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "slack_bytes",
        "slope_bytes",
        "peak_bytes",
        "usable_bytes",
        "reserved_peak_bytes",
        "step",
    )

    above: Quantity = Quantity(0.15)
    peak_above: Quantity = Quantity(0.80)

    def __post_init__(self) -> None:
        for name, bound in (("above", self.above), ("peak_above", self.peak_above)):
            if not 0 <= bound <= 1:
                raise ValueError(f"{name} is a share of the card; write for example 15% or 0.15")

    def holds_for(self, slacks: Sequence[float], peaks: Sequence[float], capacity_bytes: float) -> float | None:
        """Growth in bytes a step, or None: `slacks` and `peaks` are those of each step, oldest first."""
        if not slacks or not peaks or slacks[-1] <= self.above * capacity_bytes:
            return None
        peak = max(peaks[-PEAK_STEPS:])
        if peak <= self.peak_above * capacity_bytes:
            return None
        slope = drift(slacks, GROWN_RATIO * capacity_bytes)
        return slope if slope is not None and slope * HORIZON_STEPS > capacity_bytes - peak else None

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        gpu = fleet.gpu(subject)
        return UNKNOWN if gpu is None else held_on(gpu, self, now, lambda: self._judged(gpu))

    def _judged(self, gpu: GpuRecord) -> Verdict:
        steps = [step for step in usual_of(gpu.steps) if step.slack_bytes is not None]
        slacks = [step.slack_bytes or 0.0 for step in steps]
        peaks = [step.peak_bytes for step in steps if step.peak_bytes is not None]
        if len(slacks) < LONG_STEPS:
            return UNKNOWN
        slope = self.holds_for(slacks, peaks, gpu.usable_bytes)
        if slope is None:
            return inactive(slacks[-1] / gpu.usable_bytes, float(self.above), "ratio") if gpu.usable_bytes else UNKNOWN
        facts: dict[str, wire.Fact] = {
            "slack_bytes": slacks[-1],
            "slope_bytes": slope,
            "peak_bytes": max(peaks[-PEAK_STEPS:]),
            "usable_bytes": gpu.usable_bytes,
            "step": steps[-1].step,
        }
        if (reserved := steps[-1].reserved_peak_bytes) is not None:
            facts["reserved_peak_bytes"] = reserved
        share = slacks[-1] / gpu.usable_bytes
        return Verdict("active", share, float(self.above), "ratio", facts)
