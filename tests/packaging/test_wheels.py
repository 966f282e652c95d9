"""The wheels: what is in them, what they say of themselves, and that they work where the checkout is not."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from tests.packaging.wheels import ROOT, Wheel, run

from oomwatch import __version__

BOTH = pytest.mark.parametrize("name", ["oomwatch", "oomwatch-agent"])
SOURCES = ("backend", "agent", "frontend")
NOT_INSTALLED = {"README.md", "LICENSE", "pyproject.toml"}
Wheels = dict[str, Wheel]


def _tracked() -> set[str]:
    """The files of our packages, as they would be named when installed."""
    told = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = {line.partition("/")[2] for line in told.stdout.splitlines() if (ROOT / line).exists()}
    return {name for name in names if name not in NOT_INSTALLED}


def _imported(path: Path) -> set[str]:
    """Modules that a module names in an import."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_the_two_wheels_have_no_file_in_common(wheels: Wheels) -> None:
    assert wheels["oomwatch"].files & wheels["oomwatch-agent"].files == set()


def test_together_they_hold_our_packages_and_nothing_else(wheels: Wheels) -> None:
    assert wheels["oomwatch"].files | wheels["oomwatch-agent"].files == _tracked()


def test_the_agents_wheel_holds_of_oomwatch_what_its_modules_import(wheels: Wheels) -> None:
    files = wheels["oomwatch-agent"].files
    held = {name for name in files if name.startswith("oomwatch/") and name.endswith(".py")}
    sources = [*ROOT.glob("agent/oomwatch_*/**/*.py"), *(ROOT / "backend" / name for name in held)]
    wanted = {name.replace(".", "/") for path in sources for name in _imported(path)}
    assert held == {f"{one}.py" for one in wanted if (ROOT / "backend" / f"{one}.py").exists()} | {
        "oomwatch/__init__.py"
    }
    assert "oomwatch/wire.py" in held


def test_the_page_and_the_rules_are_in_the_servers_wheel(wheels: Wheels) -> None:
    files = wheels["oomwatch"].files
    assert {"oomwatch_frontend/index.html", "oomwatch_frontend/catalogue.json", "oomwatch/alerts.yaml"} <= files


@BOTH
def test_every_package_says_that_it_is_typed(wheels: Wheels, name: str) -> None:
    packages = {one.partition("/")[0] for one in wheels[name].files}
    everything = wheels["oomwatch"].files | wheels["oomwatch-agent"].files
    assert {package for package in packages if f"{package}/py.typed" not in everything} == set()


@BOTH
def test_a_wheel_says_what_it_is(wheels: Wheels, name: str) -> None:
    said = wheels[name].metadata
    assert (said["Name"], said["Version"], said["License-Expression"]) == (name, __version__, "Apache-2.0")
    assert said["Summary"]
    assert said["Keywords"]
    assert said["Description-Content-Type"] == "text/markdown"
    assert str(said.get_payload()).startswith(f"# {name}\n")
    assert wheels[name].info("licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")


@BOTH
def test_a_wheel_names_the_pythons_that_it_is_for(wheels: Wheels, name: str) -> None:
    said = wheels[name].metadata
    named = {one.rpartition(" ")[2] for one in said.get_all("Classifier", []) if ":: Python :: 3." in one}
    assert named == {"3.10", "3.11", "3.12", "3.13", "3.14"}
    allowed = SpecifierSet(said["Requires-Python"])
    assert [minor for minor in range(6, 15) if allowed.contains(f"3.{minor}")] == [10, 11, 12, 13, 14]


def test_oomwatch_asks_for_what_the_agent_asks_for_and_for_the_agent_itself(wheels: Wheels) -> None:
    of_both = {str(wish) for wish in wheels["oomwatch-agent"].requirements()}
    assert {str(wish) for wish in wheels["oomwatch"].requirements()} == of_both | {f"oomwatch-agent=={__version__}"}


def test_every_command_and_entry_point_is_in_one_wheel(wheels: Wheels) -> None:
    of_agent, of_server = (wheels[name].info("entry_points.txt") for name in ("oomwatch-agent", "oomwatch"))
    assert of_server.split() == ["[console_scripts]", "oomwatch", "=", "oomwatch.__main__:main"]
    assert [line for line in of_agent.splitlines() if line.startswith("[")] == [
        "[console_scripts]",
        "[verl.plugins]",
        "[vllm.general_plugins]",
    ]


def test_the_agent_alone_works_and_has_nothing_of_a_server(agent_alone: Path, tmp_path: Path) -> None:
    told = run(agent_alone / "oomwatch-agent", "--version", folder=tmp_path)
    assert told.stdout == f"oomwatch-agent {__version__}\n"
    without = (
        "import importlib.util as u; print([n for n in ('fastapi', 'sqlalchemy', 'oomwatch.web') if u.find_spec(n)])"
    )
    assert run(agent_alone / "python", "-c", without, folder=tmp_path).stdout == "[]\n"
    assert not (agent_alone / "oomwatch").exists()


def test_the_agent_alone_checks_a_node(agent_alone: Path, tmp_path: Path) -> None:
    # Port 9 is where nobody listens.
    told = run(agent_alone / "oomwatch-agent", "--check", "--server", "127.0.0.1:9", folder=tmp_path)
    assert told.returncode == 1
    assert "host" in told.stdout
    assert "127.0.0.1:9" in told.stdout + told.stderr
    assert "Traceback" not in told.stderr


def test_the_agent_alone_launches_a_training_with_the_probe_inside(agent_alone: Path, tmp_path: Path) -> None:
    look = "import sys; print('oomwatch_probe' in sys.modules)"
    told = run(agent_alone / "oomwatch-agent", "run", "--", sys.executable, "-c", look, folder=tmp_path)
    assert told.stdout == "True\n"


def test_a_server_from_its_wheel_has_its_rules_and_its_version(whole: Path, tmp_path: Path) -> None:
    assert run(whole / "oomwatch", "--version", folder=tmp_path).stdout == f"oomwatch {__version__}\n"
    checked = run(whole / "oomwatch", "check", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "site-packages/oomwatch/alerts.yaml" in checked.stdout
