"""A signal is above (or below) a fixed bound."""

from msgspec import Struct

from oomwatch.core.fleet import Fleet, Scope, Subject
from oomwatch.core.signals import signal
from oomwatch.core.verdict import UNKNOWN, Verdict
from oomwatch.units import Quantity


class Threshold(Struct, frozen=True, kw_only=True, tag_field="kind", tag="threshold", forbid_unknown_fields=True):
    """{kind: threshold, metric: gpu_used_ratio, above: 85%}"""

    metric: str
    above: Quantity | None = None
    below: Quantity | None = None

    def __post_init__(self) -> None:
        signal(self.metric)
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of above and below")

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return signal(self.metric).scopes

    @property
    def fact_names(self) -> tuple[str, ...]:
        return signal(self.metric).facts

    @property
    def moves_with_time(self) -> bool:
        return signal(self.metric).moves_with_time

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        watched = signal(self.metric)
        observed = watched.read(fleet, subject, now)
        if observed is None:
            return UNKNOWN
        limit = self.above if self.above is not None else self.below or 0.0
        active = (self.above is not None and observed.value > self.above) or (
            self.below is not None and observed.value < self.below
        )
        return Verdict("active" if active else "inactive", observed.value, float(limit), watched.unit, observed.facts)
