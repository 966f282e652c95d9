"""What a rule sees now, as rows: where it is so, and of the rest what is nearest to it."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.core.rule import Rule
from oomwatch.core.watched import Watched, nearness

SeenState: TypeAlias = Literal["active", "inactive", "unknown", "off"]


class SeenRow(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, node or run. `condition`: the place in the rule's `when` of what was judged; `value` null: no number."""

    labels: dict[str, str]
    state: SeenState
    condition: int
    value: float | None
    limit: float | None
    unit: str | None


class RuleNow(msgspec.Struct, frozen=True, kw_only=True):
    """How many subjects are in each state, and the first of them, those where it is so at the beginning."""

    alert: str
    severity: wire.Severity
    at: float
    active: int
    inactive: int
    unknown: int  # too little is known of them: nothing begins, and nothing ends
    off: int  # overrides switch the rule off for them
    subjects: tuple[SeenRow, ...]


def rule_as_of(rule: Rule, seen: Iterable[Watched], now: float, limit: int) -> RuleNow:
    every = sorted(seen, key=lambda one: nearness(one.verdict))
    states = [_state_of(one) for one in every]
    return RuleNow(
        alert=rule.alert,
        severity=rule.severity,
        at=now,
        active=states.count("active"),
        inactive=states.count("inactive"),
        unknown=states.count("unknown"),
        off=states.count("off"),
        subjects=tuple([_row(one) for one in every[:limit]]),
    )


def _state_of(one: Watched) -> SeenState:
    return "off" if one.verdict is None else one.verdict.state


def _row(one: Watched) -> SeenRow:
    verdict = one.verdict
    return SeenRow(
        labels=dict(one.labels),
        state=_state_of(one),
        condition=one.condition,
        value=verdict.value if verdict else None,
        limit=verdict.limit if verdict else None,
        unit=verdict.unit if verdict else None,
    )
