"""A signal is above (or below) a fixed bound."""

from oomwatch.core.blocks import BLOCKS_KEPT, FIVE_SECONDS
from oomwatch.core.conditions.of_signal import OfSignal
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpusteps import STEPS_KEPT
from oomwatch.core.steady import is_steady
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Duration, Quantity, format_duration


class Threshold(OfSignal, frozen=True, kw_only=True, tag="threshold"):
    """{kind: threshold, metric: gpu_used_ratio, above: 85%, steady_steps: 10, steady: 1h}

    After `steady_steps` steps without a new peak (or after the time `steady`, where no steps are told) what it says is
    for information, until there is a new peak.
    """

    above: Quantity | None = None
    below: Quantity | None = None
    steady_steps: int = 0  # 0: never
    steady: Duration = Duration(0)

    def __post_init__(self) -> None:
        watched = self.signal
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of above and below")
        if self.above is not None:
            watched.check_bound("above", self.above)
        if self.below is not None:
            watched.check_bound("below", self.below)
        if (self.steady_steps or self.steady) and watched.peaks is None:
            raise ValueError(f'"{self.metric}" has no peaks that could be steady')
        if self.steady_steps < 0 or self.steady_steps > STEPS_KEPT:
            raise ValueError(f"steady_steps must be from 0 to {STEPS_KEPT}")
        if self.steady > BLOCKS_KEPT * FIVE_SECONDS:
            raise ValueError(f"steady must be at most {format_duration(BLOCKS_KEPT * FIVE_SECONDS)}")

    @property
    def fact_names(self) -> tuple[str, ...]:
        return self.signal.facts

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        value = self.signal.read(fleet, subject, now)
        if value is None:
            return UNKNOWN
        limit = float(self.below or 0.0) if self.above is None else float(self.above)
        if not self._is_beyond(value):
            return inactive(value, limit, self.signal.unit)
        facts = self.signal.explain(fleet, subject)
        return Verdict("active", value, limit, self.signal.unit, facts, self._is_steady(fleet, subject, value))

    def is_so(self, fleet: Fleet, subject: Subject, now: float) -> bool:
        value = self.signal.read(fleet, subject, now)
        return value is not None and self._is_beyond(value)

    def _is_beyond(self, value: float) -> bool:
        return value < (self.below or 0.0) if self.above is None else value > self.above

    def stands(self, fleet: Fleet, subject: Subject, now: float) -> bool:
        is_fresh = self.signal.is_fresh
        return is_fresh is not None and is_fresh(fleet, subject, now)

    def _is_steady(self, fleet: Fleet, subject: Subject, value: float) -> bool | None:
        if self.signal.peaks is None or not (self.steady_steps or self.steady):
            return None
        peaks = self.signal.peaks(fleet, subject)
        count = self.steady_steps if peaks.of_steps else int(self.steady // FIVE_SECONDS)
        return is_steady(peaks.values, value, count=count) if count else None
