"""The page of faults names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/reliability.md").read_text(encoding="utf-8")
FAULTS = PAGE.partition("\n## What was tried at length")[0]
ROWS = [line for line in FAULTS.splitlines() if line.startswith("|") and not line.startswith("|---")]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_the_page_names_exists(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_row_names_one() -> None:
    heads = {"attack or fault", "fault", "place"}
    without = [row for row in ROWS if "::test_" not in row and row.split("|")[1].strip() not in heads]
    assert without == []


def test_every_row_has_its_figures() -> None:
    assert [row.split("|")[1].strip() for row in ROWS if not row.rstrip().rstrip("|").rpartition("|")[2].strip()] == []


def test_every_test_of_faults_is_on_the_page() -> None:
    """What is shown is told."""
    here = {path.name for path in (ROOT / "tests/faults").glob("test_*.py")} - {Path(__file__).name}
    assert here - {Path(file).name for file, _ in NAMED} == set()
