"""docs/reference/signals.md lists every format that is recognised, each with its example, as the code has them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch_agent.logs import device_oom, engines, host_oom, shortage, verl
from oomwatch_agent.logs.config_keys import ALLOWED
from oomwatch_agent.logs.trainers import TRAINERS
from oomwatch_agent.own_patterns import GROUPS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "signals.md"
TABLES = {
    "trainer's console": verl.PATTERNS,
    "rollout engine": engines.PATTERNS,
    "device out of memory": device_oom.PATTERNS,
    "host out of memory, GPU lost": host_oom.PATTERNS,
    "disk, shared memory, collectives": shortage.PATTERNS,
}


def rows() -> Iterator[str]:
    """The rows of the page's table, in the order in which lines are asked."""
    for table, patterns in TABLES.items():
        for pattern in patterns:
            yield _row(pattern.name, table, ", ".join(pattern.expect), (pattern.example,), pattern.seen_in)
    for trainer in TRAINERS:
        yield _row(trainer.name, "other trainers", "Step", trainer.example, trainer.seen_in)


def _row(name: str, table: str, gives: str, example: tuple[str, ...], seen_in: str) -> str:
    shown = "<br>".join(f"`{_safe(line)}`" for line in example if line.strip())
    return f"| {name} | {table} | {gives} | {shown} | {seen_in} |"


def _safe(line: str) -> str:
    """A raw line as a Markdown table can hold it."""
    for raw, shown in (("\x1b", "ESC"), ("\t", " "), ("|", "¦"), ("`", "'")):
        line = line.replace(raw, shown)
    return line.strip()


def test_the_table_is_that_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(page) if line.startswith("| name | table |")) + 2
    listed = [line for line in page[begin:] if line.startswith("| ")][: len(list(rows()))]
    assert listed == list(rows())


@pytest.mark.parametrize("word", [*GROUPS, *sorted(set(ALLOWED.values()))])
def test_groups_and_reasons_stand_in_the_page(word: str) -> None:
    assert word in PAGE.read_text(encoding="utf-8")


def test_the_page_says_what_a_model_can_and_cannot_do() -> None:
    assert "## Text printed by a model never raises an alert" in PAGE.read_text(encoding="utf-8")
