"""`oomwatch rules try`, as people use it."""

import time
from pathlib import Path

import msgspec
import pytest
from tests.tryout.past import BEGIN, LOWER, RULES, peak, readings, store_with

from oomwatch.__main__ import main
from oomwatch.tryout.result import Tryout

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: the rules in force, a changed file, and a database with ten minutes of long ago."""
    monkeypatch.chdir(tmp_path)
    for name in ("OOMWATCH_SERVER", "OOMWATCH_DB"):
        monkeypatch.delenv(name, raising=False)
    Path("alerts.yaml").write_text(RULES, encoding="utf-8")
    Path("new.yaml").write_text(LOWER, encoding="utf-8")
    store_with(tmp_path, readings("a", peak(600, gib=60.0))).close()
    return tmp_path


def test_what_a_changed_file_would_have_done_is_printed(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: BEGIN + 600)
    assert main(["rules", "try", "new.yaml", "--db", "oomwatch.db"]) == 0
    assert "would have fired 1 time; the rules in force: 0 times" in capsys.readouterr().out


def test_the_same_as_json(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: BEGIN + 600)
    monkeypatch.setenv("OOMWATCH_DB", "oomwatch.db")
    assert main(["rules", "try", "new.yaml", "--json", "--all"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Tryout)
    assert (found.count, found.in_force_count, found.tried.complete) == (1, 0, True)
    assert [rule.change for rule in found.rules] == ["changed", "same", "same"]


def test_without_a_comparison_every_rule_is_judged(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: BEGIN + 600)
    assert main(["rules", "try", "new.yaml", "--db", "oomwatch.db", "--alone", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Tryout)
    assert found.in_force_count is None
    assert [rule.in_force for rule in found.rules] == [None, None, None]


def test_a_file_with_mistakes_is_told_with_their_places(capsys: Output) -> None:
    Path("new.yaml").write_text("rules:\n  - alert: a\n", encoding="utf-8")
    assert main(["rules", "try", "new.yaml", "--db", "oomwatch.db"]) == 1
    assert capsys.readouterr().err.startswith("new.yaml:2:5: ")


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--db", "nowhere.db"], "there is no database nowhere.db"),
        (["--db", "oomwatch.db", "--node", "x"], 'the database knows of no node "x"; it knows a'),
        (["--db", "oomwatch.db", "--against", "missing.yaml"], "missing.yaml:1:1: cannot be read"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(capsys: Output, flags: list[str], why: str) -> None:
    assert main(["rules", "try", "new.yaml", *flags]) == 1
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


def test_trying_makes_no_database(folder: Path) -> None:
    main(["rules", "try", "new.yaml", "--db", "nowhere.db"])
    assert not (folder / "nowhere.db").exists()


@pytest.mark.parametrize("flags", [["--hours", "nan"], ["--hours", "0"], ["--budget", "0s"], ["--budget", "soon"]])
def test_nonsense_on_the_command_line_is_told_by_its_flag(capsys: Output, flags: list[str]) -> None:
    assert main(["rules", "try", "new.yaml", "--db", "oomwatch.db", *flags]) == 2
    assert f"flag {flags[0]}: " in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_told_in_one_line(capsys: Output) -> None:
    assert main(["rules", "try", "new.yaml", "--server", "http://127.0.0.1:9"]) == 1
    assert capsys.readouterr().err.startswith("oomwatch: http://127.0.0.1:9 cannot be reached: ")


def test_what_is_no_address_is_a_misuse(capsys: Output) -> None:
    assert main(["rules", "try", "new.yaml", "--server", "monitor:8642"]) == 2
    assert "is no http:// or https:// address" in capsys.readouterr().err
