"""Whose formula a part is: told in the reader's language, and every source that the estimate names."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import oomwatch.plan.memory
from oomwatch.catalogue import entries
from oomwatch.doctor.sources import source_in


def named() -> Iterator[str]:
    """Every sentence that a module of the estimate holds as a constant: what its parts name as their source."""
    for path in sorted(Path(oomwatch.plan.memory.__file__).parent.glob("*.py")):
        module = importlib.import_module(f"oomwatch.plan.memory.{path.stem}") if path.stem != "__init__" else None
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = [one for node in tree.body if isinstance(node, ast.Assign) for one in node.targets]
        values = [getattr(module, one.id, None) for one in targets if isinstance(one, ast.Name)]
        yield from (value for value in values if isinstance(value, str) and " " in value)


@pytest.mark.parametrize("source", sorted(set(named())))
def test_every_source_of_the_estimate_has_its_chinese(source: str) -> None:
    assert source_in("en", source) == source
    assert source_in("zh", source) != source


def test_no_translation_of_a_source_is_left_over() -> None:
    told = {said["en"] for key, said in entries().items() if key.startswith("plan.source.")}
    assert told == set(named())


def test_a_source_that_is_not_known_stays_as_it_is() -> None:
    assert source_in("zh", "a paper of tomorrow") == "a paper of tomorrow"
