"""A signal is above (or below) a fixed bound."""

from functools import cached_property

from msgspec import Struct

from oomwatch.core.blocks import BLOCKS_KEPT, FIVE_SECONDS
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpusteps import STEPS_KEPT
from oomwatch.core.signals import Signal, signal
from oomwatch.core.steady import is_steady
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Duration, Quantity, format_duration


class Threshold(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="threshold", forbid_unknown_fields=True, dict=True
):
    """{kind: threshold, metric: gpu_used_ratio, above: 85%, steady_steps: 10, steady: 1h}

    After `steady_steps` steps without a new peak (or after the time `steady`, where no steps are told) what it says is
    for information, until there is a new peak.
    """

    metric: str
    above: Quantity | None = None
    below: Quantity | None = None
    steady_steps: int = 0  # 0: never
    steady: Duration = Duration(0)

    def __post_init__(self) -> None:
        signal(self.metric)
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of above and below")
        if self.above is not None:
            signal(self.metric).check_bound("above", self.above)
        if self.below is not None:
            signal(self.metric).check_bound("below", self.below)
        if (self.steady_steps or self.steady) and signal(self.metric).peaks is None:
            raise ValueError(f'"{self.metric}" has no peaks that could be steady')
        if self.steady_steps < 0 or self.steady_steps > STEPS_KEPT:
            raise ValueError(f"steady_steps must be from 0 to {STEPS_KEPT}")
        if self.steady > BLOCKS_KEPT * FIVE_SECONDS:
            raise ValueError(f"steady must be at most {format_duration(BLOCKS_KEPT * FIVE_SECONDS)}")

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
    def predicts(self) -> Channel | None:
        return signal(self.metric).predicts

    @property
    def topic(self) -> Topic | None:
        return signal(self.metric).topic

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
        facts = self._signal.explain(fleet, subject)
        return Verdict("active", value, float(limit), self._signal.unit, facts, self._is_steady(fleet, subject, value))

    def _is_steady(self, fleet: Fleet, subject: Subject, value: float) -> bool | None:
        if self._signal.peaks is None or not (self.steady_steps or self.steady):
            return None
        peaks = self._signal.peaks(fleet, subject)
        count = self.steady_steps if peaks.of_steps else int(self.steady // FIVE_SECONDS)
        return is_steady(peaks.values, value, count=count) if count else None
