"""The tutorial of docs/howto/backtest.md, as it is written there."""

import re
from pathlib import Path

import pytest

from oomwatch.__main__ import main
from oomwatch.backtest import KINDS
from oomwatch.commands import flags
from oomwatch.ruletest.world import SERIES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "backtest.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def _block_after(words: str) -> str:
    """The indented block that follows these words, without its indentation."""
    found = re.search(re.escape(words) + r"\n\n((?:    .*\n|\n)+)", PAGE)
    assert found is not None, f'the page has no block after "{words}"'
    return "".join(line.removeprefix("    ") + "\n" for line in found[1].rstrip().split("\n"))


def test_the_example_fails_and_passes_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(_block_after("`mine.yaml`:"), encoding="utf-8")
    test, _, failure = _block_after("`mine_test.yaml`, beside it:").partition("$ oomwatch test rules mine_test.yaml\n")
    Path("mine_test.yaml").write_text(test, encoding="utf-8")
    assert main(["test", "rules", "mine_test.yaml"]) == 1
    assert capsys.readouterr().out == failure
    Path("mine_test.yaml").write_text(test.replace("70GiB+1GiBx7", "70GiB+1GiBx10"), encoding="utf-8")
    assert main(["test", "rules", "mine_test.yaml"]) == 0
    assert capsys.readouterr().out == _block_after("and it passes:")


def test_every_kind_of_input_is_on_both_pages() -> None:
    assert all(f"| `{kind}` |" in PAGE for kind in KINDS)
    assert all(f"`{kind}`" in REFERENCE for kind in KINDS)


def test_every_flag_of_backtest_is_in_the_reference() -> None:
    given = {flag for flag, _, _ in flags.INPUT_FLAGS} | {"--rules", "--only", "--json", "--html", "--progress"}
    assert {flag for flag in given if f"`{flag}" not in REFERENCE} == set()


def test_every_command_is_in_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z-]+) ", capsys.readouterr().out, re.MULTILINE)
    assert {"serve", "backtest", "version"} <= set(commands)
    assert [name for name in commands if not re.search(rf"`oomwatch {name}[ `]", REFERENCE)] == []


def test_the_series_that_the_page_names_exist() -> None:
    section = PAGE.partition("Series are ")[2].partition("A name that is not known")[0]
    named = set(re.findall(r"`([a-z_]+_(?:bytes|ratio|seconds|total|celsius|watts|gib|lost))", section))
    assert len(named) > 10
    assert named - set(SERIES) == set()
