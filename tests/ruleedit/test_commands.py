"""`oomwatch rules list`, `show`, `enable` and `disable` on a file, as people use them."""

from pathlib import Path

import msgspec
import pytest
from tests.ruleedit.test_switch import FILE

from oomwatch.__main__ import main
from oomwatch.ruleedit.rows import RuleRow
from oomwatch.rulefile import read_rules

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OOMWATCH_SERVER", raising=False)
    Path("alerts.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path


def test_the_list_tells_each_rule_on_a_line(capsys: Output) -> None:
    assert main(["rules", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["rule", "severity", "enabled", "for", "keeps", "firing", "watches"]
    assert lines[1].split() == ["full", "warning", "yes", "0s", "0s", "threshold", "gpu_used_ratio", "above", "85%"]
    assert len(lines) == 4


def test_bounds_and_times_are_listed_as_they_are_written(capsys: Output) -> None:
    when = "{kind: threshold, metric: gpu_used_ratio, above: 85.5%, steady_steps: 10, steady: 1h}"
    Path("alerts.yaml").write_text(f"rules: [{{alert: a, severity: info, when: {when}, summary: s}}]", encoding="utf-8")
    assert main(["rules", "list"]) == 0
    assert "threshold gpu_used_ratio above 85.5% steady_steps 10 steady 1h" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("when", "listed"),
    [
        ("{kind: jump, metric: rollout_seconds, increase: 200%}", "jump rollout_seconds increase 200%"),
        ("{kind: threshold, metric: agent_silent_seconds, above: 30}", "threshold agent_silent_seconds above 30s"),
        ("{kind: threshold, metric: gpu_used_bytes, above: 70GiB}", "threshold gpu_used_bytes above 70GiB"),
        (
            "{kind: rising, metric: torch_reserved_ratio, above: 0.9, by: 1%}",
            "rising torch_reserved_ratio above 90% by 1%",
        ),
        ("{kind: residue, increase: 60%, by: 6GiB}", "residue increase 60% by 6GiB"),
        ("{kind: plan, peak_above: 0.9}", "plan peak_above 90%"),
        ("{kind: rate, of: reshard_cycles, above_per_minute: 6}", "rate reshard_cycles above_per_minute 6"),
        ("{kind: threshold, metric: gpu_lost, above: 0}", "threshold gpu_lost above 0"),
    ],
)
def test_every_number_is_listed_with_the_unit_that_it_can_be_written_in(when: str, listed: str, capsys: Output) -> None:
    Path("alerts.yaml").write_text(f"rules: [{{alert: a, severity: info, when: {when}, summary: s}}]", encoding="utf-8")
    assert main(["rules", "list"]) == 0
    assert listed in capsys.readouterr().out


def test_the_list_as_json_holds_what_is_off_too(capsys: Output) -> None:
    assert main(["rules", "disable", "other"]) == 0
    capsys.readouterr()
    assert main(["rules", "list", "--json"]) == 0
    rows = msgspec.json.decode(capsys.readouterr().out, type=list[RuleRow])
    assert [(row.alert, row.severity, row.enabled) for row in rows] == [
        ("full", "warning", True), ("full", "critical", True), ("other", "warning", False),
    ]  # fmt: skip


def test_one_rule_is_told_at_all_its_severities_or_at_one(capsys: Output) -> None:
    assert main(["rules", "show", "full"]) == 0
    told = capsys.readouterr().out
    assert "full (warning), on" in told
    assert "full (critical), on" in told
    assert main(["rules", "show", "full", "--severity", "critical"]) == 0
    assert "full (warning)" not in capsys.readouterr().out


def test_one_rule_says_what_it_watches_as_the_list_does(capsys: Output) -> None:
    assert main(["rules", "disable", "full", "--severity", "warning", "--run", "r"]) == 0
    capsys.readouterr()
    assert main(["rules", "show", "full", "--severity", "warning"]) == 0
    told = capsys.readouterr().out
    assert "  when        threshold gpu_used_ratio above 85%\n" in told
    assert "run r: OFF, for 0s, threshold gpu_used_ratio above 85%\n" in told
    assert "null" not in told


def test_a_rule_is_switched_off_in_the_file_which_else_stays_as_it_is(capsys: Output) -> None:
    assert main(["rules", "disable", "full", "--severity", "warning"]) == 0
    assert capsys.readouterr().out == "alerts.yaml: full is off\n"
    text = Path("alerts.yaml").read_text(encoding="utf-8")
    assert text.replace("    enabled: false\n", "") == FILE
    assert Path("alerts.yaml.bak").read_text(encoding="utf-8") == FILE


def test_for_one_run_it_is_switched_by_an_override(capsys: Output) -> None:
    assert main(["rules", "disable", "full", "--run", "r", "--rules", "alerts.yaml"]) == 0
    assert capsys.readouterr().out == "alerts.yaml: full is off, run r\n"
    overrides = read_rules(Path("alerts.yaml")).rules.overrides
    assert [(one.rule.key, one.run, one.rule.enabled) for one in overrides] == [
        ("full/warning", "r", False), ("full/critical", "r", False),
    ]  # fmt: skip
    assert main(["rules", "show", "full", "--severity", "warning"]) == 0
    assert "override    node *, run r: OFF" in capsys.readouterr().out
    assert main(["rules", "list"]) == 0
    assert "yes, 1 otherwise" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["show", "enable", "disable"])
def test_a_rule_that_is_not_there_is_told_with_those_that_are(capsys: Output, what: str) -> None:
    assert main(["rules", what, "nothing"]) == 1
    assert capsys.readouterr().err == 'oomwatch: there is no rule "nothing"; there are full, other\n'


def test_a_file_with_mistakes_is_told_and_left_alone(capsys: Output) -> None:
    Path("alerts.yaml").write_text("rules: 7\n", encoding="utf-8")
    assert main(["rules", "disable", "full"]) == 1
    assert "alerts.yaml:1:8: rules must be a list" in capsys.readouterr().err
    assert Path("alerts.yaml").read_text(encoding="utf-8") == "rules: 7\n"


def test_the_shipped_rules_are_not_changed_by_accident(capsys: Output) -> None:
    Path("alerts.yaml").unlink()
    assert main(["rules", "disable", "gpu_memory_high"]) == 1
    assert "these are the rules that are shipped" in capsys.readouterr().err


def test_a_file_and_a_server_at_once_is_a_misuse(capsys: Output) -> None:
    assert main(["rules", "list", "--rules", "alerts.yaml", "--server", "http://127.0.0.1:9"]) == 2
    assert "not both" in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_told_in_one_line(capsys: Output) -> None:
    assert main(["rules", "list", "--server", "http://127.0.0.1:9"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("oomwatch: http://127.0.0.1:9 cannot be reached: ")
    assert err.count("\n") == 1
