"""What the tutorial shows is what a reader who types it sees."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
WITHOUT_A_NETWORK = ("backtest", "check", "test")
_FILE = re.compile(r"^`(\w+\.yaml)`[^\n]*:\n\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown() -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that are shown below it."""
    for block in _CONSOLE.findall(PAGE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.replace("\\\n", " ").splitlines()
            yield command, lines


def tried() -> list[tuple[str, list[str]]]:
    """Those that need neither a server nor a file of the reader's."""
    of_us = [(command, lines) for command, lines in shown() if command.startswith("oomwatch ")]
    return [(one, lines) for one, lines in of_us if one.split()[1] in WITHOUT_A_NETWORK and "my.log" not in one]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the reader has: the checkout's files, and those that the tutorial had written."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/fixtures").symlink_to(ROOT / "tests/fixtures")
    (tmp_path / "alerts.yaml").symlink_to(ROOT / "alerts.yaml")
    for name, text in _FILE.findall(PAGE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_the_tutorial_shows_commands_and_files() -> None:
    assert {name for name, _ in _FILE.findall(PAGE)} == {"mine.yaml", "mine_test.yaml"}
    assert {command.split()[1] for command, _ in tried()} == set(WITHOUT_A_NETWORK)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(("command", "lines"), tried(), ids=lambda one: one if isinstance(one, str) else "")
def test_a_command_prints_what_is_shown_below_it(
    command: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for part in shlex.split(command)[1:] for word in (sorted(map(str, Path().glob(part))) or [part])]
    assert main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    missing = [line for line in lines if line != "..." and line not in printed]
    assert missing == []
