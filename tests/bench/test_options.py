import importlib
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
PROGRAMS = sorted(
    [path.stem for path in BENCH.glob("[a-z]*.py")] + [path.parent.name for path in BENCH.glob("*/__main__.py")]
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_benchmark_says_what_it_measures_and_takes(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"bench.{name}.__main__" if (BENCH / name).is_dir() else f"bench.{name}"
    module = importlib.import_module(path)
    monkeypatch.setattr(sys, "argv", [path, "--help"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    said = capsys.readouterr().out
    assert ended.value.code in (0, None)
    assert said.startswith(f"usage: python -m bench.{name} [-h]")
    assert f"python -m bench.{name}" in said.split("\n\n", 1)[1], "its docstring does not name how it is called"
