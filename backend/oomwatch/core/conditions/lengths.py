"""Responses get longer from step to step, or more of them are clipped: what drives both time and memory."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.conditions.bounds import check_share
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.drift import LONG_STEPS, drift
from oomwatch.core.fleet import Fleet
from oomwatch.core.held import held
from oomwatch.core.lives import RunNews
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.settings import response_cap_of
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict, inactive
from oomwatch.units import Quantity


class Lengths(Kind, frozen=True, kw_only=True, tag="lengths", cache_hash=True):
    """{kind: lengths, by: 20%, clipped_by: 5%}

    Over the last thirty usual steps, and still over the last twelve, the mean response length drifts up by that share
    of itself, or the share of clipped responses by so many points.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("run",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = None
    topic: ClassVar[Topic | None] = "speed"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "step", "length_mean_tokens", "earlier_length_mean_tokens", "slope_tokens", "cap_tokens", "eta_steps",
        "clip_ratio", "earlier_clip_ratio", "over_steps",
    )  # fmt: skip

    by: Quantity = Quantity(0.2)
    clipped_by: Quantity = Quantity(0.05)

    def __post_init__(self) -> None:
        if self.by <= 0:
            raise ValueError("by must be more than 0; 20% means that responses get longer by that")
        check_share("by", self.by)
        if not 0 < self.clipped_by < 1:
            raise ValueError("clipped_by is a share of the responses; write for example 5% or 0.05")

    def holds_for(self, means: Sequence[float], clip_ratios: Sequence[float]) -> tuple[float | None, float | None]:
        """Tokens, and share of clipped responses, that each step adds; None for one that does not drift."""
        window = means[-LONG_STEPS:]
        return (
            drift(window, self.by * median(window)) if window else None,
            drift(clip_ratios, self.clipped_by),
        )

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:  # noqa: ARG002 - steps have no age
        run = fleet.runs.get(subject.name)
        steps = run.steps.segment() if run else []
        if run is None or not steps:
            return UNKNOWN
        return held(run.memo, self, steps[-1], lambda: self._judged(run, steps))

    def _judged(self, run: RunRecord, steps: Sequence[StepRecord]) -> Verdict:
        window = [record.step for record in steps if record.usual][-LONG_STEPS:]
        means = [value for step in window if (value := step.response_length_mean_tokens) is not None]
        ratios = [value for step in window if (value := step.response_clip_ratio) is not None]
        if len(window) < LONG_STEPS:
            return UNKNOWN
        tokens, clipped = self.holds_for(means, ratios)
        if tokens is None and clipped is None:
            return inactive(_end(means), None, "count") if means else INACTIVE
        facts: dict[str, wire.Fact] = {"step": window[-1].step, "over_steps": len(window)}
        if means:
            facts |= {"length_mean_tokens": _end(means), "earlier_length_mean_tokens": _start(means)}
        if ratios:
            facts |= {"clip_ratio": _end(ratios), "earlier_clip_ratio": _start(ratios)}
        if tokens is not None:
            return Verdict("active", _end(means), _start(means), "count", facts | _until_cap(means, tokens, run.config))
        return Verdict("active", _end(ratios), _start(ratios), "ratio", facts)


def _start(values: Sequence[float]) -> float:
    return median(values[: max(1, len(values) // 3)])


def _end(values: Sequence[float]) -> float:
    return median(values[-max(1, len(values) // 3) :])


def _until_cap(means: Sequence[float], tokens: float, config: Mapping[str, wire.ConfigValue]) -> dict[str, wire.Fact]:
    """When the mean gets to the configured cap, at this pace."""
    facts: dict[str, wire.Fact] = {"slope_tokens": tokens}
    cap = response_cap_of(config)
    if cap is None:
        return facts
    return facts | {"cap_tokens": cap, "eta_steps": max(0, round((cap - means[-1]) / tokens))}
