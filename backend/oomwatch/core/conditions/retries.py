"""The allocator flushes its cache to survive, again and again."""

from collections.abc import Sequence
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.held import held_on
from oomwatch.core.lives import RunNews
from oomwatch.core.peaks import usual_of
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Quantity


class Retries(Kind, frozen=True, kw_only=True, tag="retries", cache_hash=True):
    """{kind: retries, in_steps: 2, of_steps: 3, peak_above: 90%}

    torch's `num_alloc_retries` rose in so many of the last usual steps, as the probe tells it: a request did not fit,
    the cache was emptied, and the second try went well. The next one may not. On a card that is not full even at its
    peak a retry is an accident of sizes.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = ("step", "retries", "steps", "of_steps", "peak_bytes", "usable_bytes")

    in_steps: int = 2
    of_steps: int = 3
    peak_above: Quantity = Quantity(0.9)

    def __post_init__(self) -> None:
        if not 1 <= self.in_steps <= self.of_steps:
            raise ValueError("in_steps must be at least 1 and at most of_steps")
        if not 0 <= self.peak_above <= 1:
            raise ValueError("peak_above is a share of the card; write for example 90% or 0.9")

    def holds_for(self, retries: Sequence[int], peaks: Sequence[float], capacity_bytes: float) -> bool:
        """Whether these retries of each step, oldest first, are too many on a card with these peaks."""
        if peaks and max(peaks[-self.of_steps :]) <= self.peak_above * capacity_bytes:
            return False
        return sum(count > 0 for count in retries[-self.of_steps :]) >= self.in_steps

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        gpu = fleet.gpu(subject)
        if gpu is None:
            return UNKNOWN

        def judged() -> Verdict:
            steps = usual_of(gpu.steps)[-self.of_steps :]
            retries = [step.retries for step in steps if step.retries is not None]
            if len(retries) < self.of_steps:
                return UNKNOWN
            peaks = [step.peak_bytes for step in steps if step.peak_bytes is not None]
            if not self.holds_for(retries, peaks, gpu.usable_bytes):
                return inactive(float(sum(retries)), None, "count")
            facts: dict[str, wire.Fact] = {
                "step": steps[-1].step,
                "retries": sum(retries),
                "steps": sum(count > 0 for count in retries),
                "of_steps": self.of_steps,
                "usable_bytes": gpu.usable_bytes,
            }
            if peaks:
                facts["peak_bytes"] = max(peaks)
            return Verdict("active", float(sum(retries)), 0.0, "count", facts)

        return held_on(gpu, self, now, judged)
