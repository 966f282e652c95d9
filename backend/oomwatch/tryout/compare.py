"""PURE: from the transitions of both rule sets to what each rule said, what is new and what is gone."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from oomwatch import wire
from oomwatch.backtest.score import subject_of
from oomwatch.core.rule import Rule, RuleSet, key_of, severity_of
from oomwatch.tryout.result import Change, Firing, RuleTried, Told
from oomwatch.tryout.together import MARK, alike

SUBJECTS_MAX = 10  # named of each rule

ByRule = dict[str, list[Firing]]  # by the rule's key


class Compared(NamedTuple):
    rules: tuple[RuleTried, ...]
    new: list[Firing]
    gone: list[Firing]


def firings(transitions: Iterable[wire.Transition]) -> ByRule:
    """Every alert that fired, by the key of its rule, in the order of firing."""
    stories: dict[str, list[wire.Transition]] = defaultdict(list)
    for transition in transitions:
        stories[transition.id].append(transition)
    found: ByRule = defaultdict(list)
    for story in stories.values():
        fired = next((one for one in story if one.state == "firing" and one.change == "state"), None)
        if fired is not None:
            found[key_of(fired)].append(_firing(fired, story))
    return found


def _firing(fired: wire.Transition, story: Sequence[wire.Transition]) -> Firing:
    outcome = next((one.outcome for one in reversed(story) if one.outcome), None)
    return Firing(
        alert=fired.alert,
        severity=severity_of(fired),
        labels=fired.labels,
        fired_at=fired.at,
        ended_at=next((one.at for one in story if one.state == "resolved" and one.change == "state"), None),
        verdict=outcome.verdict if outcome else None,
    )


def compared(
    found: ByRule, tried: RuleSet, in_force: RuleSet | None, end_at: float, *, judged_all: bool = False
) -> Compared:
    """`found` is what the rules of together() said. Rows are in the tried file's order; what is gone comes last."""
    if in_force is None:
        return Compared(tuple(_alone(rule, found, tried, end_at) for rule in tried.rules), [], [])
    same = alike(tried, in_force)
    keys, known = {rule.key for rule in tried.rules}, {rule.key for rule in in_force.rules}
    gone_rules = [rule for rule in in_force.rules if rule.key not in keys]
    rows, new, gone = list[RuleTried](), list[Firing](), list[Firing]()
    for rule in (*tried.rules, *gone_rules):
        if rule.key in same and not judged_all:
            continue
        now = found.get(rule.key, [])
        then = now if rule.key in same else [_unmarked(one) for one in found.get(_marked_key(rule), [])]
        fresh, lost = _unlike(now, then), _unlike(then, now)
        new, gone = new + fresh, gone + lost
        row = _alone(rule, found, tried, end_at)
        change = _change(rule.key, same, keys, known)
        rows.append(replace(row, change=change, in_force=_told(then, end_at), new=len(fresh), gone=len(lost)))
    return Compared(tuple(rows), new, gone)


def _change(key: str, same: Collection[str], tried: Collection[str], in_force: Collection[str]) -> Change:
    if key in same:
        return "same"
    if key not in tried:
        return "gone"
    return "changed" if key in in_force else "new"


def _alone(rule: Rule, found: ByRule, tried: RuleSet, end_at: float) -> RuleTried:
    return RuleTried(
        alert=rule.alert,
        severity=rule.severity,
        change=None,
        enabled=any(one.key == rule.key for one in tried.in_use()),
        tried=_told(found.get(rule.key, []), end_at),
        in_force=None,
        new=None,
        gone=None,
    )


def _marked_key(rule: Rule) -> str:
    return f"{rule.alert}{MARK}/{rule.severity}"


def _unmarked(one: Firing) -> Firing:
    return replace(one, alert=one.alert.removesuffix(MARK))


def _unlike(these: Sequence[Firing], others: Sequence[Firing]) -> list[Firing]:
    """Those that overlap none of the others on the same subject."""
    by_subject: dict[str, list[Firing]] = defaultdict(list)
    for other in others:
        by_subject[subject_of(other.labels)].append(other)
    return [one for one in these if not any(_overlap(one, other) for other in by_subject[subject_of(one.labels)])]


def _overlap(one: Firing, other: Firing) -> bool:
    return _end(one) >= other.fired_at and _end(other) >= one.fired_at


def _end(one: Firing) -> float:
    return inf if one.ended_at is None else one.ended_at


def _told(alerts: Sequence[Firing], end_at: float) -> Told:
    subjects = Counter(subject_of(one.labels) for one in alerts)
    verdicts = Counter(one.verdict for one in alerts)
    return Told(
        count=len(alerts),
        subjects=tuple(name for name, _ in subjects.most_common(SUBJECTS_MAX)),
        subjects_count=len(subjects),
        first_at=min((one.fired_at for one in alerts), default=None),
        last_at=max((one.fired_at for one in alerts), default=None),
        open_seconds=sum(max(0.0, min(end_at, _end(one)) - one.fired_at) for one in alerts),
        happened=verdicts["happened"],
        false=verdicts["false"],
        avoided=verdicts["avoided"],
    )
