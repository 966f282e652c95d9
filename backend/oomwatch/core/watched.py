"""What a rule watches now: what its conditions say of every subject, and how near to firing each is.

The judge (judge.py) asks the same conditions when something arrives that they hear; here somebody has asked, and what
is worked out for them is not kept (memo.py): what they are told is what the judge found last, or would find now.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from oomwatch.core.asking import ask
from oomwatch.core.fleet import Fleet
from oomwatch.core.rule import Rule, RuleSet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import UNKNOWN, Verdict


class Watched(NamedTuple):
    """One subject of a rule. `verdict` None: the rule is off for it. `condition`: index in the rule's `when`."""

    labels: Mapping[str, str]
    verdict: Verdict | None
    condition: int = 0


def watched(fleet: Fleet, rules: RuleSet, rule: Rule, now: float) -> list[Watched]:
    """Every subject that the rule can judge, in the order of first sight."""
    with fleet.keeping.looking():
        return list(_each(fleet, rules, rule, now))


def _each(fleet: Fleet, rules: RuleSet, rule: Rule, now: float) -> Iterator[Watched]:
    for scope in rule.scopes:
        for subject in fleet.subjects(scope):
            labels = fleet.labels(subject)
            own = rules.effective(rule, labels)
            yield Watched(labels, *_nearest(fleet, own, subject, now)) if own.enabled else Watched(labels, None)


def _nearest(fleet: Fleet, rule: Rule, subject: Subject, now: float) -> tuple[Verdict, int]:
    """What the condition says that is true, or else comes nearest to it."""
    found = [(_said(rule, index, fleet, subject, now), index) for index, _ in rule.conditions.get(subject.scope, ())]
    return min(found, key=lambda pair: nearness(pair[0]), default=(UNKNOWN, 0))


def _said(rule: Rule, index: int, fleet: Fleet, subject: Subject, now: float) -> Verdict:
    """A defect of one condition leaves the others to be read; the judge keeps and counts it."""
    try:
        return ask(rule.when[index], fleet, subject, now)
    except Exception:
        return UNKNOWN


def nearness(verdict: Verdict | None) -> tuple[int, float]:
    """To sort by: what is so, then what is nearest to its limit, then what has no number, then what is unknown."""
    if verdict is None:
        return (4, 0.0)
    if verdict.state == "unknown":
        return (3, 0.0)
    if verdict.value is None:
        return (2 if verdict.state == "inactive" else 0, 0.0)
    if verdict.limit is None:
        distance = -verdict.value
    else:
        distance = abs(verdict.limit - verdict.value) / (abs(verdict.limit) or 1.0)
    return (0, -distance) if verdict.state == "active" else (1, distance)
