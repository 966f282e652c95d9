"""Whom a rule is for, once some nodes and runs have other parameters: overrides as matchers and joins."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from oomwatch.core.rule import Override, Rule, RuleSet
from oomwatch.core.subject import Scope
from oomwatch.promrules.promql import matcher, regex_of, selector

# Which run works on a GPU or a node is told by a metric of its own.
_RUN_OF: dict[Scope, tuple[str, str]] = {
    "gpu": ("node, gpu", "oomwatch_gpu_run"),
    "node": ("node", "oomwatch_node_run"),
}


class Where(NamedTuple):
    """`matchers` narrow the series themselves; `joins` come behind the whole expression."""

    matchers: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()

    def select(self, metric: str) -> str:
        return selector(metric, self.matchers)

    def narrow(self, query: str) -> str:
        return f"({query}) {' '.join(self.joins)}" if self.joins else query


class Variant(NamedTuple):
    rule: Rule
    where: Where


def variants(rule: Rule, rules: RuleSet, scope: Scope) -> list[Variant]:
    """The rule for whom no override is, each override for whom no later one is; none that is switched off."""
    overrides = [one for one in rules.overrides if one.rule.key == rule.key and _may_match(one, scope)]
    found = [Variant(rule, _where(None, overrides, scope))] if not any(map(_is_for_all, overrides)) else []
    for index, one in enumerate(overrides):
        later = overrides[index + 1 :]
        if not any(map(_is_for_all, later)):
            found.append(Variant(one.rule, _where(one, later, scope)))
    return [variant for variant in found if variant.rule.enabled]


def _may_match(override: Override, scope: Scope) -> bool:
    """A run has no node, so a node's override is never for a run."""
    return scope != "run" or fnmatchcase("", override.node)


def _is_for_all(override: Override) -> bool:
    return override.node == "*" and override.run == "*"


def _where(wanted: Override | None, unwanted: Sequence[Override], scope: Scope) -> Where:
    matchers: list[str] = []
    joins: list[str] = []
    for override, is_wanted in [*([(wanted, True)] if wanted else []), *((one, False) for one in unwanted)]:
        node, run = _told(override, scope)
        if run is None and node is not None:
            matchers.append(matcher("node", "=~" if is_wanted else "!~", node))
        elif run is not None and scope == "run":
            matchers.append(matcher("run", "=~" if is_wanted else "!~", run))
        elif run is not None:
            joins.append(_join("and" if is_wanted else "unless", scope, node, run))
    return Where(tuple(matchers), tuple(joins))


def _told(override: Override, scope: Scope) -> tuple[str | None, str | None]:
    """The patterns that say anything, as regular expressions."""
    node = None if override.node == "*" or scope == "run" else regex_of(override.node)
    return node, None if override.run == "*" else regex_of(override.run)


def _join(operator: str, scope: Scope, node: str | None, run: str) -> str:
    labels, metric = _RUN_OF[scope]
    matchers = [matcher("run", "=~", run), *([matcher("node", "=~", node)] if node is not None else [])]
    return f"{operator} on ({labels}) {selector(metric, matchers)}"
