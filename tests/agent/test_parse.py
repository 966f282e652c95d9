"""`oomwatch-agent parse`: what it prints, and what it says of logs that say nothing."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from oomwatch_agent import parse
from oomwatch_agent.__main__ import main

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
LEAK = FIXTURES / "verl-0.9.1-leak"


def run(*argv: str) -> tuple[int, list[dict[str, Any]], list[str]]:
    out, err = io.StringIO(), io.StringIO()
    code = parse.main(argv, out, err)
    return code, [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue().splitlines()


def test_a_line_is_an_event_with_its_units_and_its_writer() -> None:
    code, events, _ = run(str(LEAK / "driver.log"))
    assert code == 0
    memory = next(event for event in events if event["kind"] == "torch_memory")
    assert memory.keys() >= {"file", "line", "reserved_bytes", "allocated_bytes", "device_used_bytes", "pid", "actor"}
    assert (memory["file"], memory["actor"], memory["run"]) == ("driver.log", "WorkerDict", "demo/qwen7b_grpo")
    assert {event["kind"] for event in events} == {"config", "torch_memory", "reshard", "step", "device_oom"}


def test_the_summary_counts_what_was_recognised() -> None:
    *_, summary = run(str(LEAK / "driver.log"))
    assert summary[0] == (
        "driver.log: 1,020 lines; recognised: 61 torch_memory, 18 reshard, 8 step, 2 device_oom, 1 config"
    )


def test_a_packed_log_says_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "driver.log.gz"
    packed.write_bytes(gzip.compress((LEAK / "driver.log").read_bytes()))
    _, events, _ = run(str(packed))
    plain = run(str(LEAK / "driver.log"))[1]
    assert [{**event, "file": "driver.log"} for event in events] == plain


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("step:1 - actor/lr:1e-06 - timing_s/step:95.2\n", "step lines without timing_s/gen"),
        ("step:1 - timing_s/gen:1 - timing_s/update_weights:2\n", "step lines tell its time instead"),
        ("step:1 - timing_s/gen:1\n", "no reshard marker: set VERL_LOGGING_LEVEL=DEBUG"),
        ("step:1 - timing_s/gen:1\n", "no memory line of the trainer: set VERL_LOGGING_LEVEL=DEBUG"),
        ("hello\n", "no step line: is this the console of a trainer"),
        ("see step:1 - a/b:1\n", 'not known as a record: 1 line with "step:"'),
        ("[prompt] x\nCUDA out of memory\n", "passed over: 2 lines in printed samples ([prompt] to [score])"),
    ],
)
def test_a_log_that_says_little_is_told_why(tmp_path: Path, text: str, sentence: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(text, encoding="utf-8")
    code, _, summary = run(str(log))
    assert code == 0
    assert sentence in "\n".join(summary)


def test_an_empty_log_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "train.log").touch()
    assert run(str(tmp_path / "train.log")) == (0, [], ["train.log: 0 lines; recognised: nothing"])


def test_a_ray_sessions_folder_is_read_file_by_file() -> None:
    code, events, summary = run(str(LEAK / "ray-session-logs"))
    assert code == 0
    assert len(summary) >= 6
    assert {event["pid"] for event in events if event["kind"] == "torch_memory"} == {25520}


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    code, events, summary = run(str(tmp_path / "nope.log"), str(LEAK / "metrics.jsonl"))
    assert code == 1
    assert events
    assert f"{tmp_path / 'nope.log'}: cannot be read" in summary[0]
    assert run(str(tmp_path))[0] == 1


def test_patterns_of_a_settings_file_are_used(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(
        "patterns:\n  - {name: mine, contains: 'mem now', match: 'mem now (?P<reserved_gib>[0-9.]+)'}\n", "utf-8"
    )
    (tmp_path / "train.log").write_text("mem now 2\n", encoding="utf-8")
    _, events, _ = run("--config", str(tmp_path / "agent.yaml"), str(tmp_path / "train.log"))
    assert [event["reserved_bytes"] for event in events] == [2 * 1024**3]
    (tmp_path / "agent.yaml").write_text("patterns: 5\n", encoding="utf-8")
    assert run("--config", str(tmp_path / "agent.yaml"), str(tmp_path / "train.log"))[0] == 2


def test_it_is_a_command_of_the_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(LEAK / "metrics.jsonl")]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[0])["kind"] == "step"
    assert "metrics.jsonl: " in printed.err
