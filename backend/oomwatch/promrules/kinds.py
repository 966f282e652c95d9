"""What each kind of condition means in PromQL, for the kinds that it can say honestly: one function a kind.

All other kinds look at training steps, phases or the shape of a curve, of which Prometheus has no notion. Their rules
fire on `oomwatch_alert_firing`, which is what the server itself has judged.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from oomwatch.core.conditions import Condition
from oomwatch.core.conditions.rate import Rate
from oomwatch.core.conditions.threshold import Threshold
from oomwatch.metrics.names import metric_of
from oomwatch.promrules.promql import number, span
from oomwatch.promrules.where import Where


class Query(NamedTuple):
    """`holds` gives the series of which the condition is true now, with their values."""

    holds: str
    watched: str  # the same series, whatever their values
    worst: str  # how the worst value over time is told: max_over_time or min_over_time
    unit: str
    limit: float


def query_of(condition: Condition, where: Where) -> Query | None:
    """None for a kind that PromQL cannot say."""
    say = _KINDS.get(type(condition))
    return say(condition, where) if say else None


def is_lowered_when_steady(condition: Condition) -> bool:
    """Whether the server may tell of it for information alone."""
    return isinstance(condition, Threshold) and bool(condition.steady_steps or condition.steady)


def _threshold(condition: Threshold, where: Where) -> Query:
    watched = where.select(metric_of(condition.metric))
    sign, worst = ("<", "min_over_time") if condition.above is None else (">", "max_over_time")
    limit = float(condition.above if condition.above is not None else condition.below or 0.0)
    return Query(where.narrow(f"{watched} {sign} {number(limit)}"), watched, worst, condition.signal.unit, limit)


def _rate(condition: Rate, where: Where) -> Query:
    """Cycles a minute. `rate` needs two scrapes in the window."""
    watched = f"(rate({where.select(f'oomwatch_{condition.of}_total')}[{span(condition.window)}]) * 60)"
    limit = float(condition.above_per_minute)
    return Query(where.narrow(f"{watched} > {number(limit)}"), watched, "max_over_time", "per_minute", limit)


_KINDS: dict[type, Callable[[Any, Where], Query]] = {Threshold: _threshold, Rate: _rate}
