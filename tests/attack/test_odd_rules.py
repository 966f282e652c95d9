"""Mistakes in a rule file that would make a rule never fire, or lose what was written: each is told with its place."""

import pytest

from oomwatch.rulefile import RuleFileError, parse_rules

RULE = "  - {alert: a, when: {kind: worst_case}, summary: s}\n"


def mistakes(text: str) -> str:
    with pytest.raises(RuleFileError) as told:
        parse_rules(text)
    return str(told.value)


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("{kind: residue, increase: 5GiB}", "increase: 5.36871e+09 is no share"),
        ("{kind: lengths, by: 30000}", "by: 30000 is no share"),
        ("{kind: regression, increase: -10%}", "increase: -0.1 is no share"),
        ("{kind: regression, by: 5%}", "by: 0.05 is no size; write for example 5GiB"),
        ("{kind: regression, by: -5GiB}", "is no size"),
        ("{kind: jump, metric: rollout_seconds, increase: 200}", "increase: 200 is no share"),
        ("{kind: rising, metric: torch_reserved_ratio, above: 90%, by: -5%}", "by: -0.05 is no share"),
        ("{kind: rising, metric: torch_reserved_ratio, above: 90%, by: 5GiB}", "is no share"),
    ],
)
def test_a_bound_that_nothing_can_mean_is_a_mistake(condition: str, why: str) -> None:
    said = mistakes(f"rules:\n  - alert: a\n    when: {condition}\n    summary: s\n")
    assert said.startswith("alerts.yaml:3:11: ")
    assert why in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"rules: []\nrules:\n{RULE}", '2:1: "rules" is given twice'),
        (f"rules:\n{RULE}overrides: []\noverrides: []\n", '4:1: "overrides" is given twice'),
        (
            "rules:\n  - {alert: a, when: {kind: residue}, summary: s, summary: t}\n",
            '2:51: "summary" is given twice',
        ),
        ("rules:\n  - {alert: a, when: {kind: residue}, when: {kind: retries}, summary: s}\n", '"when" is given twice'),
        ("rules:\n  - {alert: a, when: {kind: worst_case}, summary: s, advice: do this}\n", "advice must be a list"),
        ("rules:\n  - {alert: a, when: {kind: worst_case}, summary: s, advice: {en: do}}\n", "advice must be a list"),
        ("rules:\n  - {alert: a, when: {kind: worst_case}, summary: }\n", "2:50: the summary is empty"),
        ('rules:\n  - {alert: "a\\0b", when: {kind: worst_case}, summary: s}\n', "2:5: the name of an alert cannot"),
    ],
)
def test_nothing_that_is_written_is_lost_in_silence(text: str, why: str) -> None:
    assert why in mistakes(text)


def test_no_advice_is_no_mistake() -> None:
    (rule,) = parse_rules("rules:\n  - {alert: a, when: {kind: worst_case}, summary: s, advice: }\n").rules.rules
    assert rule.texts["en"].advice == ()
