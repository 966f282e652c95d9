"""The rule file: a group of the rules of alerts.yaml, and one that watches oomwatch itself."""

from typing import Any

import yaml

from oomwatch import __version__
from oomwatch.core.rule import Rule, RuleSet
from oomwatch.metrics.names import LABELS_OF
from oomwatch.promrules.kinds import Query, is_lowered_when_steady, query_of
from oomwatch.promrules.promql import matcher, number, selector, span
from oomwatch.promrules.where import Variant, variants
from oomwatch.promrules.words import annotations

# How often Prometheus looks back within the window in which the time of a condition is added up, and how long that is.
STEP_SECONDS = 5.0
WINDOW_TIMES = 10

HEAD = f"""\
# Written by `oomwatch rules export` of oomwatch {__version__}: the rules of alerts.yaml for Prometheus.
# Prometheus must scrape oomwatch every 15 s or more often. What is said here otherwise than there, and why:
# docs/howto/prometheus-rules.md of oomwatch.
"""


def prometheus_rules(rules: RuleSet, *, keep_firing_for: bool = False) -> str:
    """The text of the file. `keep_firing_for`: the Prometheus that reads it is 2.42 or newer."""
    exported = [one for rule in rules.in_use() for one in _rules(rule, rules, keep_firing_for=keep_firing_for)]
    groups = [{"name": "oomwatch", "rules": exported}, {"name": "oomwatch-itself", "rules": _ITSELF}]
    text = yaml.safe_dump({"groups": groups}, sort_keys=False, allow_unicode=True, width=120)
    return HEAD + str(text)


def _rules(rule: Rule, rules: RuleSet, *, keep_firing_for: bool) -> list[dict[str, Any]]:
    found = _in_promql(rule, rules)
    if found is None:
        return [_judged_by_the_server(rule, rule.severity)]
    expression, queries = found
    told: dict[str, Any] = {"alert": rule.alert, "expr": expression}
    if keep_firing_for and rule.keep_firing_for_seconds:
        told["keep_firing_for"] = span(rule.keep_firing_for_seconds)
    told["labels"] = {"severity": rule.severity}
    told["annotations"] = annotations(rule, queries, LABELS_OF[rule.scopes[0]])
    twin = any(other.key == f"{rule.alert}/info" for other in rules.rules)
    return [told] if twin or not _may_be_lowered(rule) else [told, _judged_by_the_server(rule, "info")]


def _judged_by_the_server(rule: Rule, severity: str) -> dict[str, Any]:
    """On what the server says: holding, keeping and overrides are in it."""
    labels = list(dict.fromkeys(label for scope in rule.scopes for label in LABELS_OF[scope] + ("run",)))
    matchers = [matcher("alert", "=", rule.alert), matcher("severity", "=", severity)]
    return {
        "alert": rule.alert,
        "expr": f"sum without (alert) ({selector('oomwatch_alert_firing', matchers)}) > 0",
        "labels": {"severity": severity},
        "annotations": annotations(rule, (), labels),
    }


def _in_promql(rule: Rule, rules: RuleSet) -> tuple[str, list[Query]] | None:
    """The whole expression; None where some part of the rule is beyond PromQL."""
    if len(rule.scopes) != 1:
        return None
    told = [_expression(variant) for variant in variants(rule, rules, rule.scopes[0])]
    known = [one for one in told if one is not None]
    if len(known) != len(told) or not known:
        return None
    expression = _any_of([expression for expression, _ in known])
    if _may_be_lowered(rule):
        steady = selector(
            "oomwatch_alert_firing", [matcher("alert", "=", rule.alert), matcher("severity", "=", "info")]
        )
        expression = f"({expression}) unless on ({', '.join(LABELS_OF[rule.scopes[0]])}) {steady}"
    return expression, [query for _, queries in known for query in queries]


def _may_be_lowered(rule: Rule) -> bool:
    return rule.severity != "info" and any(is_lowered_when_steady(condition) for condition in rule.when)


def _expression(variant: Variant) -> tuple[str, list[Query]] | None:
    found = [query_of(condition, variant.where) for condition in variant.rule.when]
    queries = [query for query in found if query is not None]
    if len(queries) != len(found):
        return None
    holds = _any_of([query.holds for query in queries])
    return _for_long(holds, queries, variant.rule), queries


def _for_long(holds: str, queries: list[Query], rule: Rule) -> str:
    """The time for which it holds is added up over the peaks of training steps, as oomwatch does it.

    Prometheus' own `for` begins anew at every trough. The value that is told is the worst of the window.
    """
    if not rule.for_seconds:
        return holds
    window = span(max(WINDOW_TIMES * rule.for_seconds, rule.keep_firing_for_seconds))
    step = span(STEP_SECONDS)
    lasted = f"count_over_time(({holds})[{window}:{step}]) * {number(STEP_SECONDS)} >= {number(rule.for_seconds)}"
    if len(queries) != 1:
        return lasted
    return f"{queries[0].worst}({queries[0].watched}[{window}:{step}]) and ({lasted})"


def _any_of(expressions: list[str]) -> str:
    return expressions[0] if len(expressions) == 1 else " or ".join(f"({one})" for one in expressions)


def _itself(alert: str, expr: str, severity: str, summary: str, holds: str | None = "2m") -> dict[str, Any]:
    lasting = {"for": holds} if holds else {}
    told = {"alert": alert, "expr": expr, **lasting, "labels": {"severity": severity}}
    return told | {"annotations": {"summary": summary}}


_ITSELF = [
    _itself("OomwatchWatchdog", "count(oomwatch_problems == 0) > 0", "none",
            "Always fires while Prometheus sees an oomwatch that works: that it arrives shows that alerts get through.",
            None),
    _itself("OomwatchDown", "absent(oomwatch_build_info)", "critical",
            "Prometheus sees no oomwatch: nobody is warned of memory that runs out."),
    _itself("OomwatchFails", "oomwatch_problems > 0", "critical",
            "oomwatch might not tell of an alert; its /readyz says why.", "1m"),
    _itself("OomwatchStalled", "oomwatch_beat_age_seconds > 10", "critical",
            "oomwatch last judged its rules {{ $value | humanizeDuration }} ago.", "1m"),
    _itself("OomwatchCannotStore", "oomwatch_store_failed == 1", "warning",
            "oomwatch cannot write its database; alerts go out, and agents keep their messages for a while."),
    _itself("OomwatchRulesNotTaken", "oomwatch_rules_reload_failed == 1", "warning",
            "The rule file has mistakes; older rules are in force.", "5m"),
    _itself("OomwatchNotHeard", 'increase(oomwatch_notifications_total{outcome="failed"}[10m]) > 0', "warning",
            "The channel {{ $labels.channel }} refuses messages of oomwatch.", None),
]  # fmt: skip
