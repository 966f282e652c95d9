"""A phase of the run holds more than its configuration accounts for."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.held import held_in_run, last_active
from oomwatch.core.lives import RunNews
from oomwatch.core.peaks import GpuStep, usual_of
from oomwatch.core.peers import role_of, strangers_bytes
from oomwatch.core.planned import NoPlan, Plan, learned, plan_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Quantity

STEPS_MAX = 30  # of the 64 that are kept


class _Over(NamedTuple):
    phase: str
    measured_bytes: float  # the least of the steps compared: all of them were above
    high_bytes: int


class _Told(NamedTuple):
    """The phases of a start of the run that were told once."""

    segment: int
    phases: tuple[str, ...] = ()


class PlanExceeded(Kind, frozen=True, kw_only=True, tag="plan", cache_hash=True):
    """{kind: plan, steps: 2, peak_above: 90%}

    In each of the last usual steps a phase's peak, less what programs of others hold, was above the interval that is
    expected of it from the run's configuration, its model and the card (core/planned.py), and above `peak_above` of the
    card. A phase below its interval is no warning. Of each phase it comes true once in a start of the run: a plan that
    is wrong is wrong at every step, and need not be told again. Unknown where there is no plan, and on cards that the
    engine has for itself.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = None
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "phase",
        "measured_bytes",
        "low_bytes",
        "expected_bytes",
        "high_bytes",
        "over_bytes",
        "part",
        "part_bytes",
        "usable_bytes",
        "step",
    )

    steps: int = 2
    peak_above: Quantity = Quantity(0.0)

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= STEPS_MAX:
            raise ValueError(f"steps must be from 1 to {STEPS_MAX}")
        if not 0 <= self.peak_above <= 1:
            raise ValueError("peak_above is a share of the card; write for example 90% or 0.9")

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        return held_in_run(fleet, subject, self, now, self._judged)

    def _judged(self, fleet: Fleet, gpu: GpuRecord, run: RunRecord) -> Verdict:
        steps = usual_of(gpu.steps)[-self.steps :]
        plan = plan_of(run, gpu.usable_bytes)
        if isinstance(plan, NoPlan) or len(steps) < self.steps or role_of(gpu) == "rollout":
            return UNKNOWN
        learned(fleet, run, gpu.usable_bytes)
        over = list(self._over(plan, gpu, run, steps))
        news = self._news(gpu, over)
        if not news:
            return INACTIVE
        worst = max(news, key=lambda one: one.measured_bytes / one.high_bytes)
        return Verdict("active", worst.measured_bytes, float(worst.high_bytes), "bytes", _facts(worst, plan, gpu))

    def _over(self, plan: Plan, gpu: GpuRecord, run: RunRecord, steps: Sequence[GpuStep]) -> Iterator[_Over]:
        """The phases that were above in all of the steps."""
        strangers = strangers_bytes(gpu, run)
        for phase in plan.told.phases:
            high = plan.high_bytes(phase.phase)
            peaks = [peak - strangers for step in steps if (peak := step.peak_of(phase.phase)) is not None]
            if high is None or len(peaks) < len(steps):
                continue
            if min(peaks) > max(high, self.peak_above * gpu.usable_bytes):
                yield _Over(phase.phase, min(peaks), high)

    def _news(self, gpu: GpuRecord, over: Sequence[_Over]) -> list[_Over]:
        """While it is told, all that are above; else those that were not told in this start of the run."""
        key, last = (self, "told"), gpu.steps[-1]
        before = gpu.memo.last(key)
        known = before.phases if isinstance(before, _Told) and before.segment == last.segment else ()
        phases = tuple(dict.fromkeys((*known, *(one.phase for one in over))))
        gpu.memo.once(key, last.at, lambda: _Told(last.segment, phases))
        if last_active(gpu.memo, self) is not None:
            return list(over)
        return [one for one in over if one.phase not in known]


def _facts(over: _Over, plan: Plan, gpu: GpuRecord) -> dict[str, wire.Fact]:
    expected = next(one for one in plan.expected.phases if one.phase == over.phase)
    part = max(expected.parts, key=lambda one: one.bytes)
    return {
        "phase": over.phase,
        "measured_bytes": over.measured_bytes,
        "low_bytes": expected.low_bytes,
        "expected_bytes": expected.expected_bytes,
        "high_bytes": over.high_bytes,
        "over_bytes": over.measured_bytes - expected.expected_bytes,
        "part": part.name,
        "part_bytes": part.bytes,
        "usable_bytes": gpu.usable_bytes,
        "step": gpu.steps[-1].step,
    }
