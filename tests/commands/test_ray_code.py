"""How the agent's code and token come to the nodes of a Ray cluster, without a cluster."""

# ruff: noqa: PLC0415 - Ray takes seconds to load, and has no release for a Python that is new

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.missing import need_ray

from oomwatch import __version__
from oomwatch.options import SettingError

ROOT = Path(__file__).resolve().parents[2]


def test_code_is_shipped_where_a_node_lacks_it_or_has_another_and_brings_what_is_missing(tmp_path: Path) -> None:
    need_ray()
    from oomwatch.commands.ray import code
    from oomwatch.commands.ray.within import Seen

    same, bare = Seen(__version__, ()), Seen(None, ("msgspec",))
    assert not code.is_needed("auto", [same, same])
    assert code.is_needed("auto", [same, bare])
    assert code.is_needed("auto", [same._replace(oomwatch="0.0.1")])
    assert code.is_needed("ship", [same])
    with pytest.raises(SettingError, match="pip install oomwatch-agent"):
        code.is_needed("installed", [same, bare])
    env = code.runtime_env({"a": same, "b": bare}, tmp_path)
    assert [one.partition("==")[0] for one in env["pip"]] == ["msgspec"]
    assert [Path(one).name for one in env["py_modules"]] == ["oomwatch", "oomwatch_agent", "oomwatch_probe"]
    shipped = subprocess.run(
        [sys.executable, "-m", "oomwatch_agent", "--version"],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shipped.stdout == f"oomwatch-agent {__version__}\n"


def section(head: str) -> str:
    """Of the agent's pyproject.toml, which says what its wheel needs and holds."""
    text = (ROOT / "agent/pyproject.toml").read_text(encoding="utf-8")
    return text.partition(f"\n{head}\n")[2].partition("\n\n")[0]


def test_what_nodes_are_asked_for_is_what_the_agents_wheel_needs() -> None:
    need_ray()
    from oomwatch.commands.ray.within import NEEDED

    assert list(NEEDED) == re.findall(r'^  "([\w-]+)', section("dependencies = ["), re.MULTILINE)
    assert [module for module in NEEDED.values() if importlib.util.find_spec(module) is None] == []


def test_what_is_shipped_of_oomwatch_is_what_the_agents_wheel_holds_of_it() -> None:
    need_ray()
    from oomwatch.commands.ray.code import SHARED

    included = section("[tool.hatch.build.targets.wheel.force-include]")
    held = re.findall(r'= "oomwatch/(\w+\.py)"$', included, re.MULTILINE)
    assert sorted(SHARED) == sorted(held)


def test_a_secret_is_in_no_error_and_in_no_log() -> None:
    need_ray()
    from oomwatch.commands.ray.within import Hidden, Plan

    assert "hush" not in repr(Plan((), Hidden("hush"), "host"))


def test_what_a_node_has_is_told_of_the_python_that_is_asked() -> None:
    need_ray()
    from oomwatch.commands.ray.within import seen_here

    seen = seen_here()
    assert (seen.oomwatch, seen.missing) == (__version__, ())
