"""A rule of alerts.yaml, once read: one or more conditions, of which one has to hold, and how long."""

from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.subject import Channel, News, Scope


def severity_of(told: wire.Transition | wire.Alert) -> wire.Severity:
    """That of its rule, as people were told it, whatever it was lowered to since."""
    return told.lowered_from or told.severity


def key_of(told: wire.Transition | wire.Alert) -> str:
    """The key of the rule that an alert is of."""
    return f"{told.alert}/{severity_of(told)}"


class RuleText(Struct, frozen=True, kw_only=True):
    """What a rule says in one language, with {names} to be filled in."""

    summary: str
    description: str
    advice: tuple[str, ...] = ()


class Rule(Struct, frozen=True, kw_only=True, dict=True):
    """`for_seconds` and `keep_firing_for_seconds` are explained in lifecycle.py.

    What follows from the fields is asked for at every judgement, and so is worked out once (`dict` makes room for it).
    """

    alert: str
    severity: wire.Severity
    when: tuple[Condition, ...]
    for_seconds: float = 0.0
    keep_firing_for_seconds: float = 0.0
    keep_firing_steps: int = 0  # of the subject's run, where those take longer
    texts: dict[str, RuleText] = {}
    enabled: bool = True
    before_it_dies: tuple[str, ...] = ()  # of wire.ACTS: what agents are asked for when it fires
    level: bool = False  # it tells a state: where no failure follows, it was not false
    foretells: Channel | Literal["nothing"] | None = None  # None: what its conditions predict

    @cached_property
    def key(self) -> str:
        """What tells rules apart: the same alert may exist at two severities."""
        return f"{self.alert}/{self.severity}"

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(dict.fromkeys(scope for condition in self.when for scope in condition.scopes))

    @cached_property
    def predicts(self) -> Channel | None:
        """What will run full if the rule is right: its warnings are held against that afterwards (core/outcome.py)."""
        if self.foretells is not None:
            return None if self.foretells == "nothing" else self.foretells
        return next((one.predicts for one in self.when if one.predicts is not None), None)

    @cached_property
    def conditions(self) -> dict[Scope, tuple[tuple[int, Condition], ...]]:
        """The conditions that judge each kind of subject, with their places in `when`."""
        return {
            scope: tuple((index, one) for index, one in enumerate(self.when) if scope in one.scopes)
            for scope in self.scopes
        }

    def hearing(self, scope: Scope, news: tuple[News, ...]) -> tuple[tuple[int, Condition], ...]:
        """Those of the conditions of a kind of subject which such news can make true, with their places in `when`."""
        known = self._hearing.get((scope, news))
        if known is None:
            of_scope = self.conditions.get(scope, ())
            known = tuple((index, one) for index, one in of_scope if any(word in one.hears for word in news))
            self._hearing[scope, news] = known
        return known

    @cached_property
    def _hearing(self) -> dict[tuple[Scope, tuple[News, ...]], tuple[tuple[int, Condition], ...]]:
        return {}


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

    def of(self, transition: wire.Transition) -> Rule | None:
        """The rule of an alert, as it is in force for its labels; None where it is gone."""
        rule = next((rule for rule in self.rules if rule.key == key_of(transition)), None)
        return self.effective(rule, transition.labels) if rule else None

    def hears(self, rule: Rule, scope: Scope, news: tuple[News, ...]) -> bool:
        """Whether such news can make the rule true of such a subject, with its own parameters or with others."""
        others = [override.rule for override in self.overrides if override.rule.key == rule.key]
        return any(variant.hearing(scope, news) for variant in (rule, *others))
