"""The allocator flushes its cache to survive, again and again."""

from collections.abc import Sequence

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.held import held_on
from oomwatch.core.peaks import usual_of
from oomwatch.core.records import Channel, News, Scope, Subject
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict


class Retries(Struct, frozen=True, kw_only=True, tag_field="kind", tag="retries", forbid_unknown_fields=True):
    """{kind: retries, in_steps: 2, of_steps: 3}

    torch's `num_alloc_retries` rose in so many of the last usual steps, as the probe tells it: a request did not fit,
    the cache was emptied, and the second try went well. The next one may not.
    """

    in_steps: int = 2
    of_steps: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.in_steps <= self.of_steps:
            raise ValueError("in_steps must be at least 1 and at most of_steps")

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return ("gpu",)

    @property
    def fact_names(self) -> tuple[str, ...]:
        return ("step", "retries", "steps", "of_steps", "peak_bytes", "capacity_bytes")

    @property
    def predicts(self) -> Channel | None:
        return "device"

    @property
    def hears(self) -> tuple[News, ...]:
        return ("steps",)

    def holds_for(self, retries: Sequence[int]) -> bool:
        """Whether these retries of each step, oldest first, are too many."""
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
            if not self.holds_for(retries):
                return INACTIVE
            facts: dict[str, wire.Fact] = {
                "step": steps[-1].step,
                "retries": sum(retries),
                "steps": sum(count > 0 for count in retries),
                "of_steps": self.of_steps,
                "capacity_bytes": gpu.usable_bytes,
            }
            peak = max((step.peak_bytes for step in steps if step.peak_bytes is not None), default=None)
            if peak is not None:
                facts["peak_bytes"] = peak
            return Verdict("active", float(sum(retries)), 0.0, "count", facts)

        return held_on(gpu, self, now, judged)
