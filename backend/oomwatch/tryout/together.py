"""PURE: two rule sets as one, so that one engine judges both: what is the same in both is judged once.

A rule of the second that is another there goes under a name that no file can give an alert. Rules know nothing of each
other, so each says what it would have said alone.
"""

from collections.abc import Collection, Iterable

import msgspec

from oomwatch.backtest.drive import without_silence
from oomwatch.core.rule import Override, Rule, RuleSet

MARK = "\x1f"  # a control character, which the name of an alert cannot hold


def together(tried: RuleSet, in_force: RuleSet | None, *, judge_all: bool = False) -> RuleSet:
    """What differs: the rules of `tried`, and under marked names those of `in_force`. Rules of silence are left out.

    With `judge_all`, or without rules in force, what does not differ is judged too, once.
    """
    tried = without_silence(tried)
    if in_force is None:
        return tried
    in_force = without_silence(in_force)
    same = alike(tried, in_force)
    before = _marked(_without(in_force, same))
    after = tried if judge_all else _without(tried, same)
    return RuleSet(rules=(*after.rules, *before.rules), overrides=(*after.overrides, *before.overrides))


def _without(rules: RuleSet, keys: Collection[str]) -> RuleSet:
    return RuleSet(
        rules=tuple(rule for rule in rules.rules if rule.key not in keys),
        overrides=tuple(one for one in rules.overrides if one.rule.key not in keys),
    )


def _marked(rules: RuleSet) -> RuleSet:
    return RuleSet(
        rules=tuple(map(_renamed, rules.rules)),
        overrides=tuple(Override(rule=_renamed(one.rule), node=one.node, run=one.run) for one in rules.overrides),
    )


def alike(one: RuleSet, other: RuleSet) -> frozenset[str]:
    """Keys of the rules that judge the same in both, whatever they say."""
    judged = {rule.key: _judgement(rule, one) for rule in one.rules}
    return frozenset(rule.key for rule in other.rules if judged.get(rule.key) == _judgement(rule, other))


def _judgement(rule: Rule, rules: RuleSet) -> tuple[object, ...]:
    """All that decides when it fires."""
    overrides = [
        msgspec.structs.replace(one, rule=_silent(one.rule)) for one in rules.overrides if one.rule.key == rule.key
    ]
    return (_silent(rule), *overrides)


def _silent(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, texts={}, before_it_dies=())


def _renamed(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, alert=rule.alert + MARK)


def left_out(rules: Iterable[Rule]) -> list[str]:
    """Keys of the rules that watch nothing but silence: nobody's silence is in the database."""
    rules = tuple(rules)
    kept = {rule.key for rule in without_silence(RuleSet(rules=rules)).rules}
    return [rule.key for rule in rules if rule.key not in kept]
