"""Python, our packages, and what they need, against what the distribution says of itself."""

import importlib.metadata
import re
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

import oomwatch
from oomwatch.commands.installation.finding import Family, Finding

FAMILY = Family("python")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:>=\s*(?P<least>[\d.]+))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
NOT_OURS = ("dev",)


class Need(NamedTuple):
    name: str
    least: str | None
    extra: str | None


def checks(wanted: Collection[str] = ()) -> Iterator[Finding]:
    """Of the Python that runs this. `wanted`: extras that what is to run here cannot do without."""
    try:
        metadata = importlib.metadata.metadata("oomwatch")
    except importlib.metadata.PackageNotFoundError:
        yield FAMILY.warning(
            "oomwatch", f"{oomwatch.__version__} runs, and is not installed", "install it with pip, for what it needs"
        )
        return
    yield _python(metadata["Requires-Python"] or "")
    yield _ours(metadata["Version"])
    needs = _needs()
    yield from (_needed(one) for one in needs if one.extra is None)
    for extra in dict.fromkeys(one.extra for one in needs if one.extra is not None and one.extra not in NOT_OURS):
        yield _optional(extra, [one for one in needs if one.extra == extra], is_wanted=extra in wanted)


def lacks(extra: str) -> bool:
    """Whether a package of this extra is missing. Not where we are not installed, so that nobody knows."""
    return any(one.extra == extra and _fault(one) == MISSING for one in _needs())


def _needs() -> list[Need]:
    try:
        return [need(line) for line in importlib.metadata.requires("oomwatch") or ()]
    except importlib.metadata.PackageNotFoundError:
        return []


def need(line: str) -> Need:
    """Of a line such as "websockets>=13.0; extra == 'server'"."""
    wanted, _, marker = line.partition(";")
    parts = _REQUIREMENT.match(wanted.strip())
    extra = _EXTRA.search(marker)
    if parts is None:
        return Need(wanted.strip(), None, extra[1] if extra else None)
    return Need(parts["name"], parts["least"], extra[1] if extra else None)


def _python(wanted: str) -> Finding:
    here = ".".join(map(str, sys.version_info[:3]))
    least = re.search(r">=\s*([\d.]+)", wanted)
    if least is not None and numbers(here) < numbers(least[1]):
        return FAMILY.wrong("Python", f"{here}, and {wanted} is needed", "make the environment with a newer Python")
    return FAMILY.ok("Python", f"{here} at {sys.executable}")


def _ours(installed: str) -> Finding:
    if installed != oomwatch.__version__:
        said = f"the code is {oomwatch.__version__}, what is installed says {installed}"
        return FAMILY.wrong("oomwatch", said, "two copies are mixed: look at PYTHONPATH, and install oomwatch anew")
    return FAMILY.ok("oomwatch", installed)


def _needed(one: Need) -> Finding:
    fault = _fault(one)
    if fault is None:
        return FAMILY.ok(one.name, importlib.metadata.version(one.name))
    return FAMILY.wrong(one.name, fault, f'pip install "{one.name}{f">={one.least}" if one.least else ""}"')


def _optional(extra: str, needs: list[Need], *, is_wanted: bool) -> Finding:
    """An extra is there, is not there, or is there in part, which nobody has meant."""
    faults = {one.name: fault for one in needs if (fault := _fault(one)) is not None}
    what, remedy = f"extra {extra}", f'pip install "oomwatch[{extra}]"'
    if not faults:
        return FAMILY.ok(what, "installed")
    said = "; ".join(f"{name} {fault}" for name, fault in faults.items())
    if is_wanted:
        return FAMILY.wrong(what, f"what is to run here needs it: {said}", remedy)
    if all(fault == MISSING for fault in faults.values()) and len(faults) == len(needs):
        return FAMILY.ok(what, f"not installed; where it is wanted: {remedy}")
    return FAMILY.warning(what, f"in part: {said}", remedy)


MISSING = "is missing"


def _fault(one: Need) -> str | None:
    try:
        found = importlib.metadata.version(one.name)
    except importlib.metadata.PackageNotFoundError:
        return MISSING
    if one.least is not None and numbers(found) < numbers(one.least):
        return f"is {found}, and {one.least} or later is needed"
    return None


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, to compare by: "13.0.1rc2" gives 13, 0, 1."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[a-zA-Z+-]", version, maxsplit=1)[0]))
