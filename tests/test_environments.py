"""Whoever names a Python to `make` is never given another without a word."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = ".".join(map(str, sys.version_info[:3]))
OF_MAKE = ("PYTHON", "MAKEFLAGS", "MAKELEVEL")  # of the `make test` that runs this, perhaps
Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def make(need: Callable[[str, str], str]) -> Make:
    """`make same-python`, which every target comes past, of the environment that the tests run in."""
    program = need("make", "apt-get install make")

    def run(*settings: str, **environ: str) -> subprocess.CompletedProcess[str]:
        named = [program, "--no-print-directory", "same-python", f"VENV={sys.prefix}", *settings]
        outside = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
        return subprocess.run(named, cwd=ROOT, env=outside | environ, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def another(tmp_path: Path) -> str:
    """A Python of another release, as far as anybody asks it."""
    program = tmp_path / "python3.99"
    program.write_text("#!/bin/sh\necho 3.99.1\n")
    program.chmod(0o755)
    return str(program)


def test_an_environment_of_the_python_that_was_named_is_used(make: Make) -> None:
    assert make(f"PYTHON={sys.executable}").returncode == 0


def test_who_names_no_python_takes_what_is_there(make: Make) -> None:
    assert make().returncode == 0


@pytest.mark.parametrize("way", ["on the line", "in the environment"])
def test_an_environment_of_another_python_is_not_used(make: Make, another: str, way: str) -> None:
    told = make(f"PYTHON={another}") if way == "on the line" else make(PYTHON=another)
    assert told.returncode == 2
    assert f"{sys.prefix} is of Python {HERE}, and {another} is 3.99.1." in told.stderr
    assert "VENV=.venv-3.99" in told.stderr


def test_what_is_no_python_is_told(make: Make) -> None:
    told = make("PYTHON=/nowhere/python3")
    assert told.returncode == 2
    assert "/nowhere/python3 is no Python" in told.stderr
