"""What the rules are in PromQL: conditions, overrides and texts. That Prometheus takes them: tests/prometheus."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from oomwatch.__main__ import main
from oomwatch.metrics.page import families
from oomwatch.promrules.promql import regex_of
from oomwatch.promrules.rulefile import prometheus_rules
from oomwatch.rulefile import parse_rules

GPU_RULE = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: "GPU {gpu} of {node}: {value}, limit {limit}"
"""


def exported(text: str, *, keep_firing_for: bool = False) -> list[dict[str, Any]]:
    """The rules of the group that comes from alerts.yaml."""
    written = yaml.safe_load(prometheus_rules(parse_rules(text).rules, keep_firing_for=keep_firing_for))
    rules: list[dict[str, Any]] = written["groups"][0]["rules"]
    return rules


def expr(text: str) -> str:
    return str(exported(text)[0]["expr"])


def with_overrides(entries: str) -> str:
    return expr(GPU_RULE + "overrides:\n" + entries)


def test_a_threshold_is_a_comparison_and_its_severity_a_label() -> None:
    (rule,) = exported(GPU_RULE)
    assert rule["expr"] == "oomwatch_gpu_used_ratio > 0.85"
    assert rule["labels"] == {"severity": "warning"}
    assert rule["annotations"]["summary"] == (
        "GPU {{ $labels.gpu }} of {{ $labels.node }}: {{ $value | humanizePercentage }}, limit 85 %"
    )


def test_a_hold_time_is_added_up_over_a_window() -> None:
    holding = GPU_RULE.replace("    summary", "    for: 30s\n    keep_firing_for: 10m\n    summary")
    (rule,) = exported(holding, keep_firing_for=True)
    lasted = "count_over_time((oomwatch_gpu_used_ratio > 0.85)[10m:5s]) * 5 >= 30"
    assert rule["expr"] == f"max_over_time(oomwatch_gpu_used_ratio[10m:5s]) and ({lasted})"
    assert rule["keep_firing_for"] == "10m"
    assert "for" not in rule


def test_keep_firing_for_is_left_out_for_a_prometheus_that_does_not_know_it() -> None:
    holding = GPU_RULE.replace("    summary", "    keep_firing_for: 10m\n    summary")
    assert "keep_firing_for" not in exported(holding)[0]


def test_a_rate_is_counted_per_minute_whatever_its_window() -> None:
    when = "{kind: rate, of: reshard_cycles, above_per_minute: 6, window: 2m}"
    found = expr(f"rules:\n  - alert: it\n    summary: it\n    when: {when}")
    assert found == "(rate(oomwatch_reshard_cycles_total[2m]) * 60) > 6"


def test_what_promql_cannot_say_is_what_the_server_says() -> None:
    found = expr("rules:\n  - alert: it\n    severity: critical\n    summary: it\n    when: {kind: forecast}")
    assert found == 'sum without (alert) (oomwatch_alert_firing{alert="it",severity="critical"}) > 0'


def test_a_rule_that_may_be_steady_is_left_to_information_while_it_is() -> None:
    steady = GPU_RULE.replace("above: 85%", "above: 85%, steady: 1h")
    warning, info = exported(steady)
    assert warning["expr"].endswith('unless on (node, gpu) oomwatch_alert_firing{alert="full",severity="info"}')
    assert info["expr"] == 'sum without (alert) (oomwatch_alert_firing{alert="full",severity="info"}) > 0'
    assert info["labels"] == {"severity": "info"}


def test_an_override_of_nodes_is_a_matcher_and_takes_them_from_the_rule() -> None:
    found = with_overrides('  - {alert: full, match: {node: "login-*"}, set: {when: {above: 95%}}}\n')
    assert found == (
        '(oomwatch_gpu_used_ratio{node!~"login-.*"} > 0.85) or (oomwatch_gpu_used_ratio{node=~"login-.*"} > 0.95)'
    )


def test_an_override_of_runs_asks_which_run_works_on_the_gpu() -> None:
    found = with_overrides('  - {alert: full, match: {run: "llama_*"}, set: {when: {above: 95%}}}\n')
    told = 'on (node, gpu) oomwatch_gpu_run{run=~"llama_.*"}'
    assert found == (
        f"((oomwatch_gpu_used_ratio > 0.85) unless {told}) or ((oomwatch_gpu_used_ratio > 0.95) and {told})"
    )


def test_an_override_that_switches_a_rule_off_only_takes_away() -> None:
    found = with_overrides('  - {alert: full, match: {node: "a", run: "b"}, set: {enabled: false}}\n')
    assert found == '(oomwatch_gpu_used_ratio > 0.85) unless on (node, gpu) oomwatch_gpu_run{run=~"b",node=~"a"}'


def test_of_two_overrides_the_later_one_counts() -> None:
    found = with_overrides(
        '  - {alert: full, match: {node: "a*"}, set: {when: {above: 90%}}}\n'
        '  - {alert: full, match: {node: "ab"}, set: {when: {above: 95%}}}\n'
    )
    assert '(oomwatch_gpu_used_ratio{node=~"a.*",node!~"ab"} > 0.9)' in found
    assert '(oomwatch_gpu_used_ratio{node!~"a.*",node!~"ab"} > 0.85)' in found
    assert '(oomwatch_gpu_used_ratio{node=~"ab"} > 0.95)' in found


def test_an_override_for_all_takes_the_place_of_the_rule() -> None:
    assert (
        with_overrides("  - {alert: full, match: {}, set: {when: {above: 95%}}}\n") == "oomwatch_gpu_used_ratio > 0.95"
    )


def test_an_override_of_a_node_is_never_for_a_run() -> None:
    rule = "rules:\n  - alert: it\n    summary: it\n    when: {kind: threshold, metric: step_seconds, above: 1h}\n"
    other = "overrides:\n  - {alert: it, match: {node: a}, set: {enabled: false}}\n"
    assert expr(rule + other) == "oomwatch_step_seconds > 3600"


@pytest.mark.parametrize(
    ("pattern", "regex"),
    [
        ("gpu-*", "gpu-.*"),
        ("a?c", "a.c"),
        ("a.b+c", r"a\.b\+c"),
        ("[!0-9]x", "[^0-9]x"),
        ("[a-c]x", "[a-c]x"),
        ("[", r"\["),
        ("[]a]", r"[]a]"),
        ("(a|b)", r"\(a\|b\)"),
    ],
)
def test_a_shell_pattern_is_a_regular_expression(pattern: str, regex: str) -> None:
    assert regex_of(pattern) == regex


def test_a_text_that_needs_what_prometheus_lacks_is_one_that_says_where() -> None:
    text = GPU_RULE.replace("{value}, limit {limit}", "{used_bytes}")
    assert exported(text)[0]["annotations"]["summary"] == (
        "full{{ if $labels.gpu }} of GPU {{ $labels.gpu }}{{ end }}"
        "{{ if $labels.node }} on node {{ $labels.node }}{{ end }}"
    )


def test_clauses_with_what_is_not_known_are_left_out_and_those_with_labels_are_kept_where_they_have_one() -> None:
    summary = "full[ on GPU {gpu} of {node}][ in {eta_steps}]"
    assert exported(f"rules:\n  - alert: it\n    when: {{kind: forecast}}\n    summary: '{summary}'")[0]["annotations"][
        "summary"
    ] == ("full{{ if and $labels.gpu $labels.node }} on GPU {{ $labels.gpu }} of {{ $labels.node }}{{ end }}")


def test_the_rules_that_watch_oomwatch_name_metrics_that_there_are() -> None:
    written = yaml.safe_load(prometheus_rules(parse_rules(GPU_RULE).rules))
    known = {family.shown_name for family in families()}
    itself = written["groups"][1]["rules"]
    assert {one["alert"] for one in itself} >= {"OomwatchWatchdog", "OomwatchDown"}
    for one in itself:
        assert set(re.findall(r"oomwatch_\w+", one["expr"])) <= known, one["alert"]


def test_the_command_writes_a_file_or_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(GPU_RULE, encoding="utf-8")
    target = tmp_path / "out.yml"
    assert main(["rules", "export", "--rules", str(rules), str(target)]) == 0
    assert main(["rules", "export", "--rules", str(rules)]) == 0
    assert capsys.readouterr().out == target.read_text(encoding="utf-8")


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(GPU_RULE.replace("85%", "85"), encoding="utf-8")
    assert main(["rules", "export", "--rules", str(rules)]) == 1
    assert "alerts.yaml:5:" in capsys.readouterr().err
    rules.write_text(GPU_RULE, encoding="utf-8")
    assert main(["rules", "export", "--rules", str(rules), str(tmp_path / "no" / "where")]) == 1
    assert "cannot write" in capsys.readouterr().err
