"""PURE: the rules of a file as a person lists them, those that are off too."""

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.rule import Override, Rule, RuleSet, RuleText


class OverrideRow(Struct, frozen=True, kw_only=True):
    """The same rule for the nodes and runs whose names match."""

    node: str
    run: str
    enabled: bool
    when: tuple[msgspec.Raw, ...]
    for_seconds: float
    keep_firing_for_seconds: float
    keep_firing_steps: int


class RuleRow(Struct, frozen=True, kw_only=True):
    """A rule with all that decides when it fires. `firing`: its alerts now; None where nobody asked a server."""

    alert: str
    severity: wire.Severity
    enabled: bool
    scope: str
    watches: str  # its conditions in one line
    when: tuple[msgspec.Raw, ...]
    for_seconds: float
    keep_firing_for_seconds: float
    keep_firing_steps: int
    texts: dict[str, RuleText]
    overrides: tuple[OverrideRow, ...] = ()
    firing: int | None = None


def rows_of(rules: RuleSet, firing: dict[str, int] | None = None) -> tuple[RuleRow, ...]:
    """In the file's order. `firing`: how many alerts of each rule fire, by "alert/severity"."""
    return tuple(_row(rule, rules, None if firing is None else firing.get(rule.key, 0)) for rule in rules.rules)


def _row(rule: Rule, rules: RuleSet, firing: int | None) -> RuleRow:
    return RuleRow(
        alert=rule.alert,
        severity=rule.severity,
        enabled=rule.enabled,
        scope=" ".join(rule.scopes),
        watches=" or ".join(map(_in_words, rule.when)),
        when=_raw(rule),
        for_seconds=rule.for_seconds,
        keep_firing_for_seconds=rule.keep_firing_for_seconds,
        keep_firing_steps=rule.keep_firing_steps,
        texts=rule.texts,
        overrides=tuple(_override(one) for one in rules.overrides if one.rule.key == rule.key),
        firing=firing,
    )


def _override(override: Override) -> OverrideRow:
    rule = override.rule
    return OverrideRow(
        node=override.node,
        run=override.run,
        enabled=rule.enabled,
        when=_raw(rule),
        for_seconds=rule.for_seconds,
        keep_firing_for_seconds=rule.keep_firing_for_seconds,
        keep_firing_steps=rule.keep_firing_steps,
    )


def _raw(rule: Rule) -> tuple[msgspec.Raw, ...]:
    return tuple(msgspec.Raw(msgspec.json.encode(condition, enc_hook=float)) for condition in rule.when)


def _in_words(condition: Condition) -> str:
    """ "threshold gpu_used_ratio above 0.85": what is given, without what is left at its default."""
    given = msgspec.to_builtins(condition, enc_hook=float)
    usual = {field.name: field.default for field in msgspec.structs.fields(condition)}
    parts = [
        _value(value) if name in ("metric", "of") else f"{name} {_value(value)}"
        for name, value in given.items()
        if name != "kind" and value is not None and value != usual.get(name)
    ]
    return " ".join([str(given["kind"]), *parts])


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return "+".join(map(_value, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
