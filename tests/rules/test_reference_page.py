"""docs/reference/rules.md against the code."""

import typing
from pathlib import Path

import msgspec
import pytest

from oomwatch.core.conditions import Condition
from oomwatch.core.signals import SIGNALS

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/rules.md").read_text(encoding="utf-8")
ROWS = {row.split("|")[1].strip(" `"): row for row in PAGE.splitlines() if row.startswith("| `")}


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_is_on_the_page_as_it_is_in_the_code(name: str) -> None:
    signal = SIGNALS[name]
    cells = [cell.strip() for cell in ROWS[name].split("|")[2:-1]]
    assert cells == [
        ", ".join(signal.scopes),
        signal.unit,
        signal.about,
        ", ".join(f"`{fact}`" for fact in signal.facts),
    ]


@pytest.mark.parametrize("kind", typing.get_args(Condition))
def test_a_kind_of_condition_is_on_the_page_with_all_its_keys(kind: type[msgspec.Struct]) -> None:
    row = ROWS[str(kind.__struct_config__.tag)]
    for field in msgspec.structs.fields(kind):
        assert f"`{field.encode_name}`" in row
