"""The commands as people use them."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.backtest.inputs import FIXTURES, decoded, leak_csv, memory_line, step_line, write

from oomwatch.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = str(ROOT / "alerts.yaml")
Output = pytest.CaptureFixture[str]

NUMBER = {"type": "number"}
NUMBER_OR_NONE = {"type": ["number", "null"]}
TEXT = {"type": "string"}
TEXT_OR_NONE = {"type": ["string", "null"]}


def _object(**fields: object) -> dict[str, object]:
    return {"type": "object", "required": list(fields), "properties": fields}


SPREAD = _object(median=NUMBER_OR_NONE, p10=NUMBER_OR_NONE)
RESULT = _object(
    inputs={
        "type": "array",
        "items": _object(
            name=TEXT,
            duration_s=NUMBER,
            steps={"type": "integer"},
            oom_at_s=NUMBER_OR_NONE,
            alerts={
                "type": "array",
                "items": _object(
                    alert=TEXT,
                    severity={"enum": ["info", "warning", "critical"]},
                    subject=TEXT,
                    started_at_s=NUMBER,
                    ended_at_s=NUMBER_OR_NONE,
                    cause=TEXT_OR_NONE,
                    eta_s=NUMBER_OR_NONE,
                ),
            },
        ),
    },
    summary=_object(false_alarms_per_day=NUMBER_OR_NONE, recall=NUMBER_OR_NONE, lead_s=SPREAD, lead_steps=SPREAD),
)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------- backtest


def test_the_json_is_of_the_promised_form(capsys: Output) -> None:
    log = FIXTURES / "verl-0.9.1-leak" / "driver.log"
    leak_csv(Path("memory.csv"))
    assert main(["backtest", "--rules", SHIPPED, "--json", "--capacity", "48GiB", str(log), "memory.csv"]) == 0
    found: Any = decoded(capsys.readouterr().out)
    jsonschema.validate(found, RESULT)
    assert set(found) == {"inputs", "summary"}
    assert [one["name"] for one in found["inputs"]] == [str(log), "pod0"]
    assert found["summary"]["recall"] == 1


def test_the_table_says_what_fired_when_and_what_it_was_good_for(capsys: Output) -> None:
    assert main(["backtest", "--rules", SHIPPED, str(FIXTURES / "verl-0.9.1-leak" / "driver.log")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"verl-0\.9\.1-leak/driver\.log +\S+ long, 8 steps +out of memory at 12m55s", out)
    assert re.search(r" open +warning +\w+ +driver\.log/0 +\S+, \d steps", out)
    assert re.search(r"warned in time +1 of 1 \(100%\)", out)
    assert re.search(r"at 11m2s: GPU 0 of driver.log will be full in about .*\n    [\w.]+=\S+\n", out)


def test_what_could_not_be_judged_is_said_once_for_all_inputs(capsys: Output) -> None:
    runs = [str(FIXTURES / f"verl-0.9.1-{name}" / "driver.log") for name in ("leak", "healthy")]
    assert main(["backtest", "--rules", SHIPPED, *runs]) == 0
    assert re.findall(r"^.*--host-memory.*$", capsys.readouterr().out, re.MULTILINE) == [
        "2 inputs: how much memory the host has was not told: give --host-memory 1000GiB to judge it"
    ]


def test_inputs_without_an_alert_stand_in_one_line(capsys: Output) -> None:
    lines = ["series,t_seconds,used_bytes", *(f"pod{pod},{57 * row},1" for pod in range(5) for row in range(3))]
    write(Path("quiet.csv"), lines)
    assert main(["backtest", "--rules", SHIPPED, "--capacity", "48GiB", "quiet.csv"]) == 0
    assert re.search(r"^5 inputs: pod0 \.\.\. +nothing fired$", capsys.readouterr().out, re.MULTILINE)


def test_two_rule_files_stand_side_by_side(capsys: Output) -> None:
    leak_csv(Path("memory.csv"))
    rule = "rules:\n  - {{alert: a, when: {{kind: threshold, metric: gpu_used_ratio, above: {}%}}, summary: s}}\n"
    Path("early.yaml").write_text(rule.format(70), encoding="utf-8")
    Path("late.yaml").write_text(rule.format(99.9), encoding="utf-8")
    both = ["backtest", "--rules", "early.yaml", "--rules", "late.yaml", "--capacity", "48GiB", "memory.csv"]
    assert main(both) == 0
    out = capsys.readouterr().out
    assert re.search(r"^input +oom at +early\.yaml +late\.yaml$", out, re.MULTILINE)
    assert re.search(r"^pod0 +34m12s +lead \d+m\d*s? +missed$", out, re.MULTILINE)
    assert re.search(r"^warned in time +1 of 1 \(100%\) +0 of 1 \(0%\)$", out, re.MULTILINE)
    assert main([*both, "--json"]) == 0
    found: Any = decoded(capsys.readouterr().out)
    assert list(found) == ["rules"]
    assert [one["file"] for one in found["rules"]] == ["early.yaml", "late.yaml"]
    for one in found["rules"]:
        jsonschema.validate(one, RESULT)


def test_one_rule_can_be_judged_alone(capsys: Output) -> None:
    leak_csv(Path("memory.csv"))
    command = ["backtest", "--rules", SHIPPED, "--capacity", "48GiB", "memory.csv", "--json", "--only"]
    assert main([*command, "gpu_memory_high"]) == 0
    found: Any = decoded(capsys.readouterr().out)
    assert {alert["alert"] for one in found["inputs"] for alert in one["alerts"]} == {"gpu_memory_high"}
    assert main([*command, "gpu_memory_hihg"]) == 2
    assert 'has no rule "gpu_memory_hihg"; it has agent_silent' in capsys.readouterr().err


def test_the_report_needs_nothing_but_a_browser(capsys: Output) -> None:
    leak_csv(Path("memory.csv"), name="<pod>")
    assert main(["backtest", "--rules", SHIPPED, "--capacity", "48GiB", "--html", "out.html", "memory.csv"]) == 0
    page = Path("out.html").read_text(encoding="utf-8")
    assert "&lt;pod&gt;" in page
    assert "<pod>" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=|<img[^>]+src=.http", page)
    assert "gpu_memory_high" in page
    assert "Plotly.newPlot" in page
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        (["nothing.log"], 1, "nothing.log: there is no such file or folder"),
        (["prose.txt"], 1, "prose.txt: nothing in it is recognised. Expected is a trace"),
        (["empty"], 1, "empty: no file in this folder is recognised"),
        (["prose.txt", "--kind", "csv", "--capacity", "48GiB"], 1, "prose.txt:1: the columns series"),
        (["prose.txt", "--kind", "log"], 1, "prose.txt: nothing in this log is recognised"),
        (["prose.txt", "--capacity", "48"], 2, 'flag --capacity: "48" is too small; write the unit'),
        (["prose.txt", "--capacity", "lots"], 2, 'flag --capacity: "lots" is no quantity'),
        (["cut.jsonl"], 1, "cut.jsonl:2: "),
        (["--rules", "prose.txt", "prose.txt"], 1, "prose.txt:1:1: "),
    ],
)
def test_what_cannot_be_used_is_named_with_the_reason(
    capsys: Output, arguments: list[str], status: int, why: str
) -> None:
    write(Path("prose.txt"), ["The weather was fine."])
    write(Path("cut.jsonl"), ['{"advance": 5.0}', '{"advance": "soon"}'])
    Path("empty").mkdir()
    rules = [] if "--rules" in arguments else ["--rules", SHIPPED]
    assert main(["backtest", *rules, *arguments]) == status
    assert why in capsys.readouterr().err


def test_progress_is_told_where_it_is_asked_for(capsys: Output) -> None:
    leak_csv(Path("memory.csv"))
    assert main(["backtest", "--rules", SHIPPED, "--capacity", "48GiB", "--progress", "memory.csv"]) == 0
    assert "1/1 pod0: 0.0 h" in capsys.readouterr().err


# ---------------------------------------------------------------- record and replay


def test_a_run_is_written_into_a_trace_that_says_the_same(capsys: Output) -> None:
    log = str(FIXTURES / "verl-0.9.1-leak" / "driver.log")
    assert main(["record", "run.jsonl", log]) == 0
    assert re.fullmatch(r"run\.jsonl: \d+ lines\n", capsys.readouterr().out)
    assert main(["backtest", "--rules", SHIPPED, "--json", "run.jsonl", log]) == 0
    found: Any = decoded(capsys.readouterr().out)
    first, second = found["inputs"]
    assert first["name"] == "run.jsonl"
    assert {**first, "name": "", "notes": []} == {**second, "name": "", "notes": []}
    assert main(["replay", "run.jsonl", "--rules", SHIPPED]) == 0
    assert '"alert":"gpu_memory_high"' in capsys.readouterr().out


def test_a_trace_that_is_there_is_not_written_over_unless_that_is_meant(capsys: Output) -> None:
    write(Path("a.log"), [memory_line("After resume kv_cache", 60), step_line(1)])
    write(Path("old.jsonl"), ["precious"])
    assert main(["record", "old.jsonl", "a.log"]) == 1
    assert "old.jsonl: cannot be written: File exists" in capsys.readouterr().err
    assert Path("old.jsonl").read_text(encoding="utf-8") == "precious\n"
    assert main(["record", "--force", "old.jsonl", "a.log"]) == 0
    assert "precious" not in Path("old.jsonl").read_text(encoding="utf-8")


def test_a_table_of_many_series_is_no_single_trace(capsys: Output) -> None:
    write(Path("two.csv"), ["series,t_seconds,used_bytes", "a,0,1", "b,0,1"])
    assert main(["record", "out.jsonl", "two.csv", "--capacity", "48GiB"]) == 2
    assert "two.csv has 2 series, each an input of its own" in capsys.readouterr().err
    assert not Path("out.jsonl").exists()


def test_recording_without_an_input_is_the_servers_own(capsys: Output) -> None:
    """It is `serve --record`, and so refuses what that refuses."""
    write(Path("settings.yaml"), ["listen: nowhere"])
    assert main(["record", "out.jsonl", "--config", "settings.yaml"]) == 2
    assert "nowhere" in capsys.readouterr().err
