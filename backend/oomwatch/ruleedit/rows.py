"""PURE: the rules of a file as a person lists them, those that are off too."""

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.rule import Override, Rule, RuleSet, RuleText
from oomwatch.units import Duration, Quantity, format_duration


class OverrideRow(Struct, frozen=True, kw_only=True):
    """The same rule for the nodes and runs whose names match."""

    node: str
    run: str
    enabled: bool
    watches: str  # its conditions in one line
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
        watches=_watches(rule),
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
        watches=_watches(rule),
        when=_raw(rule),
        for_seconds=rule.for_seconds,
        keep_firing_for_seconds=rule.keep_firing_for_seconds,
        keep_firing_steps=rule.keep_firing_steps,
    )


def _watches(rule: Rule) -> str:
    return " or ".join(map(_in_words, rule.when))


def _raw(rule: Rule) -> tuple[msgspec.Raw, ...]:
    return tuple(msgspec.Raw(msgspec.json.encode(condition, enc_hook=float)) for condition in rule.when)


def _in_words(condition: Condition) -> str:
    """ "threshold gpu_used_ratio above 85%": what is given, as in the file, without what is left at its default."""
    given = msgspec.structs.asdict(condition)
    usual = {field.name: field.default for field in msgspec.structs.fields(condition)}
    is_share = str(given.get("metric", "")).endswith("_ratio")
    parts = [
        _value(value, is_share) if name in ("metric", "of") else f"{name} {_value(value, is_share)}"
        for name, value in given.items()
        if value is not None and value != usual.get(name)
    ]
    return " ".join([str(condition.__struct_config__.tag), *parts])


def _value(value: object, is_share: bool) -> str:
    if isinstance(value, list | tuple):
        return "+".join(_value(one, is_share) for one in value)
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Quantity) and is_share:
        return f"{100 * value:g}%"
    return f"{value:g}" if isinstance(value, float) else str(value)
