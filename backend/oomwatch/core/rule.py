"""A rule of alerts.yaml, once read: one or more conditions, of which one has to hold, and how long."""

from fnmatch import fnmatchcase

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.fleet import Scope


class RuleText(Struct, frozen=True, kw_only=True):
    """What a rule says in one language, with {names} to be filled in."""

    summary: str
    description: str
    advice: tuple[str, ...] = ()


class Rule(Struct, frozen=True, kw_only=True):
    """`for_seconds` and `keep_firing_for_seconds` are explained in lifecycle.py."""

    alert: str
    severity: wire.Severity
    when: tuple[Condition, ...]
    for_seconds: float = 0.0
    keep_firing_for_seconds: float = 0.0
    texts: dict[str, RuleText] = {}
    enabled: bool = True

    @property
    def key(self) -> str:
        """What tells rules apart: the same alert may exist at two severities."""
        return f"{self.alert}/{self.severity}"

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(dict.fromkeys(scope for condition in self.when for scope in condition.scopes))

    @property
    def moves_with_time(self) -> bool:
        return any(condition.moves_with_time for condition in self.when)


class Override(Struct, frozen=True, kw_only=True):
    """The same rule with other parameters, for the nodes and runs whose names match (shell patterns)."""

    rule: Rule
    node: str = "*"
    run: str = "*"

    def matches(self, labels: dict[str, str]) -> bool:
        return fnmatchcase(labels.get("node", ""), self.node) and fnmatchcase(labels.get("run", ""), self.run)


class RuleSet(Struct, frozen=True, kw_only=True):
    """All rules in force, in the file's order. Of the overrides that match, the last one counts."""

    rules: tuple[Rule, ...] = ()
    overrides: tuple[Override, ...] = ()

    def in_use(self) -> list[Rule]:
        """The rules that are judged anywhere: a rule that is off may be on for some."""
        on = {override.rule.key for override in self.overrides if override.rule.enabled}
        return [rule for rule in self.rules if rule.enabled or rule.key in on]

    def effective(self, rule: Rule, labels: dict[str, str]) -> Rule:
        for override in reversed(self.overrides):
            if override.rule.key == rule.key and override.matches(labels):
                return override.rule
        return rule
