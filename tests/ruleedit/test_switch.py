"""A rule switched on or off in the text of a rule file: all else stays as a person wrote it."""

import difflib
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch.ruleedit.marks import EditError
from oomwatch.ruleedit.switch import Switch, UnknownRuleError, switched
from oomwatch.rulefile import RuleFileError, parse_rules

SHIPPED = (Path(__file__).resolve().parents[2] / "alerts.yaml").read_text(encoding="utf-8")

FILE = """\
# Ours.
rules:
  - alert: full        # how full
    severity: warning  # or critical?
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: >-
      it is
      full

  # The other one.
  - {alert: full, severity: critical, when: {kind: threshold, metric: gpu_used_ratio, above: 95%}, summary: "full"}
  - alert: other
    enabled: yes   # for now
    when: {kind: threshold, metric: host_memory_ratio, above: 95%}
    summary: other
"""


def changed_lines(before: str, after: str) -> list[str]:
    told = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in told if line[0] in "+-"]


def enabled(text: str, alert: str, severity: str, **labels: str) -> bool:
    rules = parse_rules(text).rules
    rule = next(one for one in rules.rules if one.key == f"{alert}/{severity}")
    return rules.effective(rule, labels).enabled


def test_a_rule_without_the_switch_gets_it_behind_its_severity() -> None:
    after = switched(FILE, Switch("full", enabled=False, severity="warning"))
    assert changed_lines(FILE, after) == ["+     enabled: false"]
    assert after.index("enabled: false") > after.index("or critical?")
    assert not enabled(after, "full", "warning")
    assert enabled(after, "full", "critical")


def test_a_switch_that_is_there_is_turned_and_its_comment_stays() -> None:
    after = switched(FILE, Switch("other", enabled=False))
    assert "    enabled: false   # for now\n" in after
    assert after.replace("enabled: false ", "enabled: yes ") == FILE


def test_a_rule_on_one_line_stays_on_one_line() -> None:
    after = switched(FILE, Switch("full", enabled=False, severity="critical"))
    assert "{alert: full, severity: critical, enabled: false, when:" in after
    assert len(after.splitlines()) == len(FILE.splitlines())


def test_without_a_severity_all_of_the_alert_are_switched() -> None:
    after = switched(FILE, Switch("full", enabled=False))
    assert not enabled(after, "full", "warning")
    assert not enabled(after, "full", "critical")
    assert enabled(after, "other", "warning")


def test_off_and_on_again_gives_rules_that_are_on() -> None:
    off = switched(FILE, Switch("full", enabled=False))
    on = switched(off, Switch("full", enabled=True))
    assert parse_rules(on).rules == parse_rules(FILE).rules
    assert switched(on, Switch("full", enabled=True)) == on


@pytest.mark.parametrize("severity", ["warning", "critical"])
def test_a_file_switched_off_and_on_is_the_file_that_it_was(severity: wire.Severity) -> None:
    off = switched(FILE, Switch("full", enabled=False, severity=severity))
    assert switched(off, Switch("full", enabled=True, severity=severity)) == FILE


def test_a_switch_that_somebody_wrote_a_word_beside_is_turned_and_stays() -> None:
    off = FILE.replace("enabled: yes ", "enabled: false ")
    assert "    enabled: true   # for now\n" in switched(off, Switch("other", enabled=True))


def test_switching_on_what_is_on_changes_nothing() -> None:
    assert switched(FILE, Switch("full", enabled=True)) == FILE


def test_for_one_run_an_override_is_added_at_the_end() -> None:
    after = switched(FILE, Switch("full", enabled=False, severity="warning", run="qwen7b"))
    assert after.startswith(FILE.rstrip())
    assert not enabled(after, "full", "warning", run="qwen7b")
    assert enabled(after, "full", "warning", run="other")
    assert enabled(after, "full", "critical", run="qwen7b")


def test_the_same_override_is_changed_and_not_added_again() -> None:
    off = switched(FILE, Switch("full", enabled=False, node="gpu-07"))
    on = switched(off, Switch("full", enabled=True, node="gpu-07"))
    assert changed_lines(off, on) == ["-     set: {enabled: false}", "+     set: {enabled: true}"]


def test_an_override_with_other_parameters_keeps_them() -> None:
    text = FILE + "overrides:\n  - alert: full\n    match: {run: r}\n    set:\n      for: 5m  # long\n"
    after = switched(text, Switch("full", enabled=False, run="r"))
    assert changed_lines(text, after) == ["+       enabled: false"]
    rules = parse_rules(after).rules
    assert {one.rule.for_seconds for one in rules.overrides} == {300.0}


def test_an_override_that_a_later_one_covers_is_not_the_one_to_change() -> None:
    earlier = "  - {alert: full, match: {run: r}, set: {enabled: false}}\n"
    later = "  - {alert: full, match: {run: '*'}, set: {enabled: false}}\n"
    after = switched(FILE + "overrides:\n" + earlier + later, Switch("full", enabled=True, run="r"))
    assert enabled(after, "full", "warning", run="r")
    assert not enabled(after, "full", "warning", run="x")


@pytest.mark.parametrize(
    "section",
    [
        "overrides:\n",
        "overrides:  # none yet\n",
        "overrides: ~  # none yet\n",
        "overrides: []\n",
        "overrides: [{alert: other, match: {run: x}, set: {for: 1m}}]\n",
        "overrides:\n- alert: other\n  match: {run: x}\n  set: {for: 1m}\n# the end\n",
        "overrides:\n    - alert: other\n      match: {run: x}\n      set:\n        summary: |\n          one\n# end\n",
    ],
)
@pytest.mark.parametrize("behind", ["", "notify:\n  language: zh\n"])
def test_the_section_may_look_as_it_likes(section: str, behind: str) -> None:
    after = switched(FILE + section + behind, Switch("full", enabled=False, run="r"))
    assert not enabled(after, "full", "warning", run="r")
    assert after.count("#") == (FILE + section + behind).count("#")
    assert not [line for line in changed_lines(FILE + section + behind, after) if "#" in line and "~" not in section]


@pytest.mark.parametrize("name", ["a: b", "123", "null", 'with "quotes"', "中文/7b", "*", "- x", "#1", "it's"])
def test_a_run_may_be_called_as_it_likes(name: str) -> None:
    after = switched(FILE, Switch("full", enabled=False, run=name))
    assert not enabled(after, "full", "warning", run=name)


def test_line_breaks_stay_those_of_the_file() -> None:
    text = FILE.replace("\n", "\r\n")
    after = switched(switched(text, Switch("full", enabled=False)), Switch("other", enabled=False, run="r"))
    assert after.replace("\r\n", "").count("\n") == 0
    assert not enabled(after, "full", "warning")


def test_a_file_without_a_last_line_break_is_no_trouble() -> None:
    after = switched(FILE.rstrip(), Switch("other", enabled=False, run="r"))
    assert not enabled(after, "other", "warning", run="r")


@pytest.mark.parametrize("rule", [one.key for one in parse_rules(SHIPPED).rules.rules][::6])
def test_a_shipped_rule_can_be_switched_and_nothing_else_changes(rule: str) -> None:
    alert, severity = rule.split("/")
    for node in (None, "gpu-07"):
        after = switched(SHIPPED, Switch(alert, enabled=False, severity=severity, node=node))  # type: ignore[arg-type]
        assert not enabled(after, alert, severity, node="gpu-07")
        assert not [line for line in changed_lines(SHIPPED, after) if line.startswith("-")]


def test_a_rule_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(UnknownRuleError, match='no rule "ful"; there are full, other'):
        switched(FILE, Switch("ful", enabled=False))
    with pytest.raises(UnknownRuleError, match="of severity info"):
        switched(FILE, Switch("full", enabled=False, severity="info"))


def test_a_file_with_mistakes_is_not_touched() -> None:
    with pytest.raises(RuleFileError):
        switched("rules: [", Switch("full", enabled=False))


def test_a_rule_that_shares_its_text_with_another_is_left_to_a_person() -> None:
    text = """\
rules:
  - &base
    alert: a
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: a
overrides:
  - {alert: a, match: {node: x}, set: &set {for: 5m}}
  - {alert: a, match: {node: y}, set: *set}
"""
    with pytest.raises(EditError, match="edit it by hand"):
        switched(text, Switch("a", enabled=False, node="y"))
