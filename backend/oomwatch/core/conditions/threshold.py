"""A signal is above (or below) a fixed bound."""

from functools import cached_property

from msgspec import Struct

from oomwatch.core.fleet import Fleet
from oomwatch.core.records import News, Scope, Subject
from oomwatch.core.signals import Signal, signal
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Quantity


class Threshold(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="threshold", forbid_unknown_fields=True, dict=True
):
    """{kind: threshold, metric: gpu_used_ratio, above: 85%}"""

    metric: str
    above: Quantity | None = None
    below: Quantity | None = None

    def __post_init__(self) -> None:
        signal(self.metric)
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of above and below")
        if self.above is not None:
            signal(self.metric).check_bound("above", self.above)
        if self.below is not None:
            signal(self.metric).check_bound("below", self.below)

    @cached_property
    def _signal(self) -> Signal:
        return signal(self.metric)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self._signal.scopes

    @property
    def fact_names(self) -> tuple[str, ...]:
        return self._signal.facts

    @property
    def hears(self) -> tuple[News, ...]:
        return self._signal.hears

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        value = self._signal.read(fleet, subject, now)
        if value is None:
            return UNKNOWN
        if self.above is not None:
            active, limit = value > self.above, self.above
        else:
            limit = self.below or Quantity(0.0)
            active = value < limit
        if not active:
            return INACTIVE
        return Verdict("active", value, float(limit), self._signal.unit, self._signal.explain(fleet, subject))
