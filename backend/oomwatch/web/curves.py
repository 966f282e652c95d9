"""The curve that goes with an alert: what its GPU's or host's memory was in the last quarter of an hour."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from oomwatch import wire
from oomwatch.core.rule import Rule
from oomwatch.notify.channel import Curve
from oomwatch.store.history import Series
from oomwatch.store.store import Store

SPAN_SECONDS = 900.0
STEP_SECONDS = 2.0
_HOST_SERIES = {"machine": "host_memory_used_bytes", "container": "host_cgroup_used_bytes"}

logger = logging.getLogger(__name__)


class Asked(NamedTuple):
    """A series of the store, and where on it a line belongs."""

    series: str
    labels: dict[str, str]
    limit: float | None


class Curves:
    """`read(fn, *args)` runs a read of the store in a thread; `rule_of` finds the rule of an alert."""

    def __init__(
        self,
        store: Store,
        read: Callable[..., Awaitable[Any]],
        rule_of: Callable[[wire.Transition], Rule | None],
    ) -> None:
        self._store = store
        self._read = read
        self._rule_of = rule_of

    async def of(self, transition: wire.Transition, now: float) -> Curve | None:
        """The memory of an alert's subject until `now`; None where there is none, or it cannot be read."""
        asked = asked_of(transition, self._rule_of(transition))
        if asked is None:
            return None
        try:
            found: Series = await self._read(
                self._store.series, asked.series, asked.labels, now - SPAN_SECONDS, now, STEP_SECONDS
            )
        except Exception:
            logger.exception("cannot read the curve of %s", transition.id)
            return None
        return Curve(found.times, found.max, found.unit, asked.limit)


def asked_of(transition: wire.Transition, rule: Rule | None) -> Asked | None:
    """What to draw for an alert: of a GPU its share in use, of a node the memory that its limit counts."""
    labels: dict[str, str] = {name: transition.labels[name] for name in ("node", "gpu") if name in transition.labels}
    if "node" not in labels:
        return None
    if "gpu" in labels:
        return Asked("gpu_used_ratio", labels, transition.limit if _watches(rule, "gpu_used_ratio") else None)
    limited_by = str(transition.facts.get("limited_by"))
    limit = _host_limit(transition, rule) if limited_by in _HOST_SERIES else None
    return Asked(_HOST_SERIES.get(limited_by, "host_memory_used_bytes"), labels, limit)


def _host_limit(transition: wire.Transition, rule: Rule | None) -> float | None:
    """In bytes: the rule's share of what there is, or all of it."""
    whole = transition.facts.get("limit_bytes")
    share = transition.limit if _watches(rule, "host_memory_ratio") else None
    return float(whole) * (1.0 if share is None else share) if isinstance(whole, int | float) else None


def _watches(rule: Rule | None, metric: str) -> bool:
    return rule is not None and any(getattr(condition, "metric", None) == metric for condition in rule.when)
