"""PURE: the rules of a file as a person lists them, those that are off too."""

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.conditions.of_signal import OfSignal
from oomwatch.core.conditions.rate import Rate
from oomwatch.core.conditions.regression import Regression
from oomwatch.core.conditions.residue import Residue
from oomwatch.core.rule import Override, Rule, RuleSet, RuleText
from oomwatch.core.signals import signal
from oomwatch.units import Duration, Quantity, format_duration

GIB = 2**30
# Bounds that are neither a signal's nor shares.
_NO_SHARES: dict[tuple[type[Condition], str], str] = {
    (Rate, "above_per_minute"): "per_minute",
    (Residue, "by"): "bytes",
    (Regression, "by"): "bytes",
}

_SIGNS = {"celsius": " °C", "per_minute": "/min"}


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
    parts = [
        _value(value, "") if name in ("metric", "of") else f"{name} {_value(value, _unit(condition, name))}"
        for name, value in given.items()
        if value is not None and value != usual.get(name)
    ]
    return " ".join([str(condition.__struct_config__.tag), *parts])


def _unit(condition: Condition, name: str) -> str:
    """In which unit the file has a bound: its signal's, or that of shares, unless it is none."""
    if name in ("above", "below") and isinstance(condition, OfSignal):
        return signal(condition.metric).unit
    return _NO_SHARES.get((type(condition), name), "ratio")


def _value(value: object, unit: str) -> str:
    if isinstance(value, list | tuple):
        return "+".join(_value(one, unit) for one in value)
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Quantity):
        return _quantity(value, unit)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _quantity(value: Quantity, unit: str) -> str:
    if unit == "ratio":
        return f"{100 * value:g}%"
    if unit == "seconds":
        return format_duration(value)
    return f"{value / GIB:g}GiB" if unit == "bytes" else f"{value:g}{_SIGNS.get(unit, '')}"
