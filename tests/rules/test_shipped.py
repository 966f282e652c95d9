"""The YAML files that belong to the code: whoever reads them, libyaml or Python, finds the same in them."""

from pathlib import Path

import pytest
import yaml

from oomwatch.yamlread import shipped

BACKEND = Path(__file__).resolve().parents[2] / "backend"
FILES = sorted(BACKEND.rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_libyaml_finds_in_a_file_of_ours_is_what_python_finds(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert shipped(text) == yaml.safe_load(text) != {}


def test_without_libyaml_our_files_are_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert shipped("a: [1, b]") == {"a": [1, "b"]}
