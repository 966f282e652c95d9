"""The lock files follow pyproject.toml, and can be used by anyone anywhere."""

import json
import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"requirements-agent.txt": "", "requirements.txt": "run", "requirements-dev.txt": "dev"}
RUN = ("server", "postgres", "cluster", "oidc")
EACH_LOCK = pytest.mark.parametrize("name", LOCKS)


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _pins(name: str) -> dict[str, list[Requirement]]:
    """Every pin of a lock file, by package; a package may have one pin for each range of Pythons."""
    pins: dict[str, list[Requirement]] = {}
    for line in _text(name).splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            pin = Requirement(line.removesuffix("\\").strip())
            pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


def _wanted(extra: str) -> list[Requirement]:
    """What pyproject.toml asks for, as the installed project says it."""
    found = [Requirement(text) for text in requires("oomwatch") or ()]
    extras = {"": [""], "run": ["", *RUN], "dev": ["", *RUN, "dev"]}[extra]
    needed = [wish for wish in found if any(_applies(wish, one) for one in extras)]
    return [wish for wish in needed if wish.name != "oomwatch"]


def _applies(wish: Requirement, extra: str) -> bool:
    return wish.marker is None or wish.marker.evaluate({"extra": extra})


@EACH_LOCK
def test_a_lock_pins_everything_that_the_project_asks_for(name: str) -> None:
    pins, wanted = _pins(name), _wanted(LOCKS[name])
    assert wanted
    for wish in wanted:
        found = pins.get(canonicalize_name(wish.name), [])
        assert found, f"{name} lacks {wish.name}: make lock"
        for pin in found:
            release = next(iter(pin.specifier)).version
            assert wish.specifier.contains(release, prereleases=True), f"{name}: {pin.name} {release}: make lock"


@EACH_LOCK
def test_every_pin_has_hashes(name: str) -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", _text(name))[1:]
    assert blocks
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


@EACH_LOCK
def test_a_lock_names_no_address_and_no_folder(name: str) -> None:
    assert not re.search(r"://|(?m:^\s*-)(?!-hash)|file:|@ ", _text(name))


def test_locks_agree_with_each_other() -> None:
    widest = _pins("requirements-dev.txt")
    for name in LOCKS:
        for package, pins in _pins(name).items():
            theirs = {str(pin.specifier) for pin in pins}
            assert theirs <= {str(pin.specifier) for pin in widest[package]}, f"{name} differs in {package}: make lock"


def test_the_lock_of_the_pages_tools_has_hashes_and_names_no_address() -> None:
    locked = json.loads(_text("package-lock.json"))
    packages = {name: entry for name, entry in locked["packages"].items() if name}
    assert packages
    assert [name for name, entry in packages.items() if "integrity" not in entry] == []
    assert "://" not in _text("package-lock.json").replace('"url": "https://', "")  # where the makers ask for donations
    wanted = json.loads(_text("package.json"))["devDependencies"]
    assert locked["packages"][""]["devDependencies"] == wanted, "npm install --package-lock-only"
