"""A rule's English texts as templates of Prometheus."""

import re
from collections.abc import Collection

from oomwatch.core.rule import Rule
from oomwatch.figures import figure
from oomwatch.promrules.kinds import Query
from oomwatch.wording import LABELS, PLACEHOLDER

_VALUE = {
    "ratio": "{{ $value | humanizePercentage }}",
    "bytes": "{{ $value | humanize1024 }}B",
    "seconds": "{{ $value | humanizeDuration }}",
    "celsius": '{{ $value | printf "%.0f" }} °C',
    "per_minute": '{{ $value | printf "%.3g" }} a minute',
}
_OTHER_VALUE = "{{ $value | humanize }}"
# Clauses in [brackets] are left out where something in them is not known; so are those in (parentheses) here.
_CLAUSE = re.compile(r"\[([^\[\]]*\{\w+\}[^\[\]]*)\]|( \([^()\[\]]*\{\w+\}[^()\[\]]*\))")


def annotations(rule: Rule, queries: Collection[Query], labels: Collection[str]) -> dict[str, str]:
    """Summary and description. `labels`: those that the series have; `queries`: none where the server judges."""
    text = rule.texts.get("en")
    known = {label: f"{{{{ $labels.{label} }}}}" for label in LABELS if label in labels}
    known |= _figures(rule, queries)
    summary = _filled(text.summary, known) if text else None
    told = {"summary": summary or f"{_plain(rule.alert)}{_whereabouts(labels)}"}
    description = _filled(text.description, known) if text and text.description else None
    return told | ({"description": description} if description else {})


def _figures(rule: Rule, queries: Collection[Query]) -> dict[str, str]:
    """The value and the bound, where all variants of the rule have the same."""
    told = {"for": figure(rule.for_seconds, "seconds", "en")}
    units = list(dict.fromkeys(query.unit for query in queries))
    limits = list(dict.fromkeys(query.limit for query in queries))
    if len(units) == 1:
        told["value"] = _VALUE.get(units[0], _OTHER_VALUE)
        if len(limits) == 1:
            told["limit"] = figure(limits[0], units[0], "en")
    return told


def _whereabouts(labels: Collection[str]) -> str:
    clauses = {"gpu": " of GPU {gpu}", "node": " on node {node}", "run": ", run {run}"}
    return "".join(
        f"{{{{ if $labels.{label} }}}}{clause.replace(f'{{{label}}}', f'{{{{ $labels.{label} }}}}')}{{{{ end }}}}"
        for label, clause in clauses.items()
        if label in labels
    )


def _plain(text: str) -> str:
    """What a person wrote is no template."""
    return text.replace("{{", "{ {")


def _filled(sentence: str, known: dict[str, str]) -> str | None:
    """None where a number is needed that Prometheus does not have."""

    def keep(match: re.Match[str]) -> str:
        clause = match[1] or match[2]
        names = PLACEHOLDER.findall(clause)
        if any(name not in known for name in names):
            return ""
        asked = [f"$labels.{name}" for name in dict.fromkeys(names) if name in LABELS]
        condition = asked[0] if len(asked) == 1 else f"and {' '.join(asked)}"
        return f"\0if {condition}\1{clause}\0end\1" if asked else clause

    sentence = " ".join(_CLAUSE.sub(keep, _plain(sentence)).split())
    if any(name not in known for name in PLACEHOLDER.findall(sentence)):
        return None
    filled = PLACEHOLDER.sub(lambda match: known[match[1]], sentence)
    return filled.replace("\0", "{{ ").replace("\1", " }}")
