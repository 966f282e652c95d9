"""Rule tests that make no sense are told, and none ends in a traceback."""

from pathlib import Path

import pytest

from oomwatch.__main__ import main

RULES = "rules:\n  - {alert: a, when: {kind: event, of: [device_oom]}, summary: s}\n"
TEST = "rule_files: [rules.yaml]\ntests:\n  - alert_rule_test:\n      - {eval_time: 3m, alertname: a}\n"


def tried(folder: Path, text: str) -> int:
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    (folder / "t.yaml").write_text(text, encoding="utf-8")
    return main(["test", "rules", str(folder / "t.yaml")])


def test_an_event_on_a_node_without_series_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = "    events: [{at: 10s, node: other, event: {kind: device_oom, error: x}}]\n"
    assert tried(tmp_path, TEST + events) == 1
    assert 'firing, and not expected: {node="other"' in capsys.readouterr().out


@pytest.mark.parametrize("size", ["capacity: 48", "host_memory: -1GiB", "disk: 0", "capacity: 99999999TiB"])
def test_a_size_without_its_unit_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str], size: str) -> None:
    assert tried(tmp_path, TEST + f"    {size}\n") == 1
    said = capsys.readouterr()
    assert "is no size; write for example 80GiB" in said.out + said.err
