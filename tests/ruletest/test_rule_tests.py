"""`oomwatch test rules`: promtool's form of test for our rules."""

from pathlib import Path

import pytest

from oomwatch.__main__ import main
from oomwatch.rulefile import read_rules
from oomwatch.ruletest.notation import SeriesName, Values
from oomwatch.ruletest.testfile import read_tests

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_TESTS = sorted((ROOT / "tests" / "rules").glob("*.yaml"))
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text(
        """
rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    for: 60s
    keep_firing_for: 2m
    summary: {en: "{value} in use", zh: "已用 {value}"}
""",
        encoding="utf-8",
    )


def _test(text: str) -> None:
    Path("t.yaml").write_text("rule_files: [rules.yaml]\ntests:\n" + text, encoding="utf-8")


RISING = """\
  - interval: 30s
    input_series:
      - {series: gpu_used_gib, values: 60+2x10 20x10}
    alert_rule_test:
"""


# ---------------------------------------------------------------- the shipped ones


@pytest.mark.parametrize("path", SHIPPED_TESTS, ids=lambda path: path.stem)
def test_the_shipped_rules_pass_their_tests(path: Path, capsys: Output) -> None:
    assert main(["test", "rules", str(path)]) == 0, capsys.readouterr().out


def test_every_shipped_rule_is_seen_to_fire_and_not_to_fire() -> None:
    """At each of its severities, by some test of tests/rules."""
    shipped = read_rules(ROOT / "alerts.yaml").rules.rules
    rules = {(rule.alert, rule.severity) for rule in shipped}
    expectations = [
        expected for path in SHIPPED_TESTS for test in read_tests(path).file.tests for expected in test.alert_rule_test
    ]
    fired = {
        (expected.alertname, str(alert.exp_labels.get("severity")))
        for expected in expectations
        for alert in expected.exp_alerts
    }
    quiet = {expected.alertname for expected in expectations if not expected.exp_alerts}
    assert rules - fired == set()
    assert {alert for alert, _ in rules} - quiet == set()


# ---------------------------------------------------------------- running


def test_what_is_as_expected_passes(capsys: Output) -> None:
    _test(
        RISING
        + """\
      - {eval_time: 3m, alertname: full}
      - eval_time: 6m
        alertname: full
        exp_alerts:
          - exp_labels: {severity: warning, node: n, gpu: 0}
            exp_annotations: {summary: 90 % in use, summary_zh: 已用 90 %}
      - {eval_time: 9m, alertname: full}
"""
    )
    assert main(["test", "rules", "t.yaml"]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out == "t.yaml: 1 test, 3 checks: passed\n"


def test_what_is_otherwise_is_told_with_place_labels_and_text(capsys: Output) -> None:
    _test(
        RISING.replace("- interval", "- name: a leak\n    interval")
        + """\
      - {eval_time: 6m, alertname: full}
      - {eval_time: 9m, alertname: full, exp_alerts: [{exp_labels: {severity: critical}}]}
      - eval_time: 6m
        alertname: full
        exp_alerts: [{exp_labels: {severity: warning, node: n, gpu: 0}, exp_annotations: {summary: other}}]
      - {eval_time: 6m, alertname: fulll}
"""
    )
    assert main(["test", "rules", "t.yaml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "t.yaml:8:9: a leak: at 6m, full:",
        '    firing, and not expected: {gpu="0", node="n", severity="warning"} since 3m30s: 90 % in use',
        "t.yaml:9:9: a leak: at 9m, full:",
        '    expected, and not firing: {severity="critical"}',
        "t.yaml:10:9: a leak: at 6m, full:",
        '    summary of {gpu="0", node="n", severity="warning"}',
        "        expected: other",
        "        said:     90 % in use",
        't.yaml:13:9: a leak: there is no rule "fulll"; known are full',
        "t.yaml: 1 test, 4 checks: 4 failed",
    ]


def test_missing_values_are_missing_data_and_missing_nodes_are_silent(capsys: Output) -> None:
    Path("rules.yaml").write_text(
        """
rules:
  - {alert: full, when: {kind: threshold, metric: gpu_used_ratio, above: 85%}, summary: s}
  - {alert: silent, severity: critical, when: {kind: threshold, metric: agent_silent_seconds, above: 30s}, summary: s}
""",
        encoding="utf-8",
    )
    _test(
        """\
  - interval: 1m
    input_series:
      - {series: 'gpu_used_ratio{gpu="0"}', values: 90%x5 _x5}
      - {series: 'gpu_used_ratio{gpu="1"}', values: 10%x10}
      - {series: 'gpu_used_ratio{node="b"}', values: 10%x2}
    alert_rule_test:
      - {eval_time: 2m, alertname: silent}
      - {eval_time: 4m, alertname: silent, exp_alerts: [{exp_labels: {severity: critical, node: b}}]}
      - {eval_time: 10m, alertname: full, exp_alerts: [{exp_labels: {severity: warning, node: n, gpu: 0}}]}
"""
    )
    assert main(["test", "rules", "t.yaml"]) == 0, capsys.readouterr().out


def test_steps_torch_host_and_events_come_in_too(capsys: Output) -> None:
    Path("rules.yaml").write_text(
        """
rules:
  - {alert: slow, when: {kind: jump, metric: rollout_seconds, increase: 200%}, summary: s}
  - {alert: host, when: {kind: threshold, metric: host_memory_ratio, above: 88%}, summary: s}
  - {alert: torch, when: {kind: rising, metric: torch_reserved_ratio, above: 90%}, summary: s}
  - {alert: gone, when: {kind: event, of: [device_oom]}, summary: s}
""",
        encoding="utf-8",
    )
    _test(
        """\
  - interval: 1m
    run: grpo
    capacity: 40GiB
    host_memory: 100GiB
    input_series:
      - {series: rollout_seconds, values: 30x8 100}
      - {series: 'phase_seconds{phase="update_actor"}', values: 20x9}
      - {series: host_memory_used_gib, values: 50x5 90x5}
      - {series: gpu_used_gib, values: 39x30}
      - {series: torch_reserved_gib, values: 32+0.25x28}
    events:
      - {at: 3m, event: {kind: device_oom, error: torch.OutOfMemoryError, gpu: "0"}, pid: 7}
    alert_rule_test:
      - {eval_time: 2m, alertname: gone}
      - {eval_time: 3m, alertname: gone, exp_alerts: [{exp_labels: {severity: warning, node: n, gpu: 0, run: grpo}}]}
      - {eval_time: 8m, alertname: slow}
      - {eval_time: 9m, alertname: slow, exp_alerts: [{exp_labels: {severity: warning, run: grpo}}]}
      - {eval_time: 5m, alertname: host}
      - {eval_time: 7m, alertname: host, exp_alerts: [{exp_labels: {severity: warning, node: n, run: grpo}}]}
      - {eval_time: 27m, alertname: torch, exp_alerts: [{exp_labels: {severity: warning, node: n, gpu: 0, run: grpo}}]}
"""
    )
    assert main(["test", "rules", "t.yaml"]) == 0, capsys.readouterr().out


def test_a_folder_is_all_of_its_files(capsys: Output) -> None:
    Path("tests").mkdir()
    for name in ("a", "b"):
        _test(RISING + "      - {eval_time: 1m, alertname: full}\n")
        text = Path("t.yaml").read_text(encoding="utf-8").replace("rules.yaml", "../rules.yaml")
        Path(f"tests/{name}.yaml").write_text(text, encoding="utf-8")
    assert main(["test", "rules", "tests"]) == 0
    assert capsys.readouterr().out.count("passed") == 2


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("  - {alert_rule_test: []}\n", "t.yaml:3:5: alert_rule_test expects nothing: such a test cannot fail"),
        ("  - {interval: 0s, alert_rule_test: [{eval_time: 1m, alertname: full}]}\n", "interval must be more than 0s"),
        (RISING + "      - {eval_tim: 1m, alertname: full}\n", "t.yaml:7:10: unknown key"),
        (RISING + "      - {eval_time: soon, alertname: full}\n", 't.yaml:7:21: "soon" is no duration'),
        (RISING.replace("60+2x10", "60+2y10"), 't.yaml:5:40: "60+2y10" is no series of values'),
        (RISING.replace("gpu_used_gib", "gpu_use"), 't.yaml:5:18: unknown series "gpu_use"; known are gpu_used_bytes'),
        (RISING.replace("gpu_used_gib", "'gpu_used_gib{gpux=\"0\"}'"), 'has no label "gpux"; it has node, gpu'),
        (RISING.replace("gpu_used_gib", "'gpu_used_gib{gpu=0}'"), '"gpu=0" is no label'),
        ("  - {events: [{at: 1m, event: {kind: device_om}}], alert_rule_test: []}\n", 'unknown kind "device_om"'),
    ],
)  # fmt: skip
def test_a_mistake_in_a_test_is_told_with_its_place(capsys: Output, text: str, why: str) -> None:
    _test(text)
    assert main(["test", "rules", "t.yaml"]) == 1
    assert why in capsys.readouterr().out


def test_a_mistake_in_the_rule_file_is_told_with_its_place(capsys: Output) -> None:
    _test(RISING + "      - {eval_time: 1m, alertname: full}\n")
    Path("rules.yaml").write_text("rules: 5\n", encoding="utf-8")
    assert main(["test", "rules", "t.yaml"]) == 1
    assert "rules.yaml:1:8: rules must be a list" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 2 3", [1, 2, 3]),
        ("1+2x3", [1, 3, 5, 7]),
        ("10-2.5x2", [10, 7.5, 5]),
        ("5x2", [5, 5, 5]),
        ("_ _x2 7", [None, None, None, 7]),
        ("1GiB+512MiBx1", [2**30, 1.5 * 2**30]),
        ("50%x1", [0.5, 0.5]),
        ("-1e2", [-100]),
        ("", []),
    ],
)
def test_values_are_written_as_promtool_has_them(text: str, values: list[float | None]) -> None:
    assert Values(text).values == values


@pytest.mark.parametrize("text", ["x3", "1+x3", "1+2", "_+1x2", "stale", "1x9999999", "1+2x200000 "])
def test_values_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no series of values|more than"):
        Values(text)


def test_a_series_is_a_name_with_labels() -> None:
    name = SeriesName('gpu_used_bytes{node="n", gpu="0",}')
    assert (name.name, name.labels) == ("gpu_used_bytes", {"node": "n", "gpu": "0"})
