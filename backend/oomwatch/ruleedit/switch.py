"""PURE: a rule switched on or off in the text of a rule file, everywhere or for some nodes or runs.

Everywhere: its `enabled`. For some: an entry under `overrides:` with just that match. What comes out is read again and
has to be the same rules but for that switch; where it is not, nothing is changed.
"""

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

import msgspec
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from oomwatch import wire
from oomwatch.core.rule import Override, Rule, RuleSet
from oomwatch.ruleedit.marks import (
    Edit,
    EditError,
    compose,
    content_end,
    edited,
    entry,
    items,
    line_end,
    newline_of,
    value_of,
    word,
)
from oomwatch.rulefile import RuleFile, RuleFileError, parse_rules

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_AS_PUT = re.compile(r"(?:\r?\n[ ]*|, )enabled: false\Z")
_NOT_PLAIN = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


class Switch(NamedTuple):
    """What is to be switched. No severity: all of the alert's. Node and run are shell patterns, as in the file."""

    alert: str
    enabled: bool
    severity: wire.Severity | None = None
    node: str | None = None
    run: str | None = None

    def means(self, alert: str | None, severity: str | None) -> bool:
        return alert == self.alert and self.severity in (None, severity)

    @property
    def match(self) -> dict[str, str]:
        return {name: value for name, value in (("node", self.node), ("run", self.run)) if value is not None}


class UnknownRuleError(EditError):
    """There is no such rule in the file."""


def switched(text: str, switch: Switch, name: str = "alerts.yaml") -> str:
    """The text with the rule switched. Raises RuleFileError where it has mistakes, UnknownRuleError and EditError."""
    before = parse_rules(text, name)
    if not any(switch.means(rule.alert, rule.severity) for rule in before.rules.rules):
        raise UnknownRuleError(_unknown(switch, before))
    root = compose(text)
    edits = [] if root is None else list(_edits(text, root, switch))
    after = edited(text, edits)
    if not _is_as_wished(before, after, switch):
        raise EditError("this file is written in a way that a program cannot change safely; edit it by hand")
    return after


def _unknown(switch: Switch, rules: RuleFile) -> str:
    severity = f" of severity {switch.severity}" if switch.severity else ""
    known = ", ".join(dict.fromkeys(rule.alert for rule in rules.rules.rules)) or "none"
    return f'there is no rule "{switch.alert}"{severity}; there are {known}'


def _edits(text: str, root: MappingNode, switch: Switch) -> Iterator[Edit]:
    if switch.match:
        yield _override(text, root, switch)
        return
    for rule in items(value_of(root, "rules")):
        severity = word(value_of(rule, "severity")) or "warning"
        is_meant = switch.means(word(value_of(rule, "alert")), severity)
        is_on_unsaid = switch.enabled and entry(rule, "enabled") is None
        if is_meant and not is_on_unsaid and isinstance(rule, MappingNode):
            yield _set(text, rule, switch, behind="severity" if entry(rule, "severity") else "alert")


def _set(text: str, mapping: MappingNode, switch: Switch, *, behind: str | None = None) -> Edit:
    """`enabled` within a mapping: changed where it stands, else put behind an entry, or behind the last one.

    What was put there to switch a rule off goes again: a file that is switched off and on is the file that it was.
    """
    told = "true" if switch.enabled else "false"
    old = value_of(mapping, "enabled")
    if old is not None:
        ours = _put_by_us(text, old) if switch.enabled and behind else None
        return Edit(*ours, "") if ours else Edit(old.start_mark.index, old.end_mark.index, told)
    if not mapping.value:
        return Edit(mapping.start_mark.index + 1, mapping.start_mark.index + 1, f"enabled: {told}")
    key, child = (entry(mapping, behind) if behind else None) or mapping.value[-1]
    end = content_end(text, child)
    if mapping.flow_style:
        return Edit(end, end, f", enabled: {told}")
    end = line_end(text, end)
    return Edit(end, end, f"{newline_of(text)}{' ' * key.start_mark.column}enabled: {told}")


def _put_by_us(text: str, told: Node) -> tuple[int, int] | None:
    """Where `enabled: false` stands as it is put here, with nothing said beside it: then it may go again."""
    start, end = told.start_mark.index, told.end_mark.index
    before = _AS_PUT.search(text, max(0, start - 200), end)
    return before.span() if before and re.match(r"[ \t]*(?:[\r\n,}]|\Z)", text[end:]) else None


# ---------------------------------------------------------------- overrides


def _override(text: str, root: MappingNode, switch: Switch) -> Edit:
    found = entry(root, "overrides")
    section = found[1] if found else None
    ours = [one for one in items(section) if _is_ours(one, switch)]
    # Of the overrides that match, the last one counts: an earlier one of ours is changed only where none comes after.
    if ours and section is not None and ours[-1] is _last_of(section, switch):
        change = value_of(ours[-1], "set")
        if isinstance(change, MappingNode):
            return _set(text, change, switch)
    return _appended(text, found, switch)


def _last_of(section: Node, switch: Switch) -> Node | None:
    of_alert = [one for one in items(section) if word(value_of(one, "alert")) == switch.alert]
    return of_alert[-1] if of_alert else None


def _is_ours(override: Node, switch: Switch) -> bool:
    match = value_of(override, "match")
    pairs = match.value if isinstance(match, MappingNode) else []
    return (
        word(value_of(override, "alert")) == switch.alert
        and word(value_of(override, "severity")) == switch.severity
        and {str(key.value): word(child) for key, child in pairs} == switch.match
    )


def _appended(text: str, found: tuple[Node, Node] | None, switch: Switch) -> Edit:
    newline = newline_of(text)
    if found is None:
        end = len(text.rstrip())
        return Edit(end, len(text), f"{newline}{newline}overrides:{newline}{_block(switch, 2, newline)}{newline}")
    key, section = found
    if isinstance(section, SequenceNode) and section.flow_style:
        end = section.end_mark.index - 1
        return Edit(end, end, (", " if section.value else "") + _flow(switch))
    if isinstance(section, SequenceNode):
        end = line_end(text, content_end(text, section))
        return Edit(end, end, newline + _block(switch, section.start_mark.column, newline))
    end = line_end(text, max(key.end_mark.index, section.end_mark.index if isinstance(section, ScalarNode) else 0))
    start = text.index(":", key.end_mark.index) + 1
    comment = (
        text[section.end_mark.index : end] if isinstance(section, ScalarNode) and section.value else text[start:end]
    )
    return Edit(start, end, comment.rstrip() + newline + _block(switch, 2, newline))


def _block(switch: Switch, indent: int, newline: str) -> str:
    head, *rest = _parts(switch)
    return newline.join([f"{' ' * indent}- {head}", *(f"{' ' * (indent + 2)}{part}" for part in rest)])


def _flow(switch: Switch) -> str:
    return "{" + ", ".join(_parts(switch)) + "}"


def _parts(switch: Switch) -> list[str]:
    match = ", ".join(f"{name}: {_quoted(value)}" for name, value in switch.match.items())
    severity = [f"severity: {switch.severity}"] if switch.severity else []
    told = "true" if switch.enabled else "false"
    return [f"alert: {_quoted(switch.alert)}", *severity, f"match: {{{match}}}", f"set: {{enabled: {told}}}"]


def _quoted(name: str) -> str:
    return name if _PLAIN.match(name) and name.lower() not in _NOT_PLAIN else json.dumps(name, ensure_ascii=False)


# ---------------------------------------------------------------- what came out


def _is_as_wished(before: RuleFile, text: str, switch: Switch) -> bool:
    """Whether the text holds the same rules, and just the wished ones are switched."""
    try:
        after = parse_rules(text)
    except RuleFileError:
        return False
    old, new = before.rules, after.rules
    if _beside(before) != _beside(after) or list(map(_on, old.rules)) != list(map(_on, new.rules)):
        return False
    if not switch.match:
        return _overrides_on(old.overrides) == _overrides_on(new.overrides) and all(
            one.enabled == (switch.enabled if switch.means(one.alert, one.severity) else was.enabled)
            for was, one in zip(old.rules, new.rules, strict=True)
        )
    is_kept = old.rules == new.rules and all(
        was == one or (_has_match(one, switch) and _overrides_on((was,)) == _overrides_on((one,)))
        for was, one in zip_longest(old.overrides, new.overrides[: len(old.overrides)])
    )
    wished = [rule for rule in new.rules if switch.means(rule.alert, rule.severity)]
    return is_kept and all(_last_override(new.overrides, rule, switch) == switch.enabled for rule in wished)


def _last_override(overrides: tuple[Override, ...], rule: Rule, switch: Switch) -> bool | None:
    """What the last override with just this match says of a rule."""
    ours = [one for one in overrides if one.rule.key == rule.key and _has_match(one, switch)]
    return ours[-1].rule.enabled if ours else None


def _has_match(override: Override, switch: Switch) -> bool:
    return (override.node, override.run) == (switch.node or "*", switch.run or "*")


def _beside(rules: RuleFile) -> RuleFile:
    """All that the file holds beside the rules."""
    return msgspec.structs.replace(rules, rules=RuleSet())


def _on(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, enabled=True)


def _overrides_on(overrides: tuple[Override, ...]) -> list[Override]:
    return [msgspec.structs.replace(one, rule=_on(one.rule)) for one in overrides]
