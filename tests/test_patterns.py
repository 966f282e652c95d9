"""No regular expression of ours can be made to run for ever by what it reads."""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.ambiguity import doubt

ROOT = Path(__file__).resolve().parents[1]
ROOTS = (ROOT / "backend", ROOT / "agent")
TAKES_A_PATTERN = {
    f"re.{name}" for name in ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
}
RUNS = {"__main__"}  # to import it runs a program
# Patterns of which the source alone does not tell all: those of a table, which its module holds and which are found
# there; those of literal texts, or of a name that was chosen before; and people's own, which a helper with a time limit
# matches.
PUT_TOGETHER = {
    "oomwatch.doctor.formulas": ["'|'.join(map(re.escape"],
    "oomwatch.doctor.read.grammar": ["pattern, re.ASCII", "{quote}"],
    "oomwatch.plan.cards": ["{pattern}"],
    "oomwatch.store.soundness": ["name.encode()"],
    "oomwatch_agent.logs.envelope": ["compile(pattern)"],
    "oomwatch_agent.logs.gates": ["_anchored(literal)"],
    "oomwatch_agent.own_patterns": ["pattern.match"],
}
DEEPEST = 4

Pattern = re.Pattern[Any]


class Written(NamedTuple):
    """A call of `re` in the source."""

    module: str
    call: ast.Call

    @property
    def text(self) -> str:
        return ast.unparse(self.call)


def _written() -> Iterator[Written]:
    for root in ROOTS:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if "migrations" in parts or parts[-1] in RUNS:
                continue
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield from (Written(name, call) for call in _calls(ast.parse(path.read_text(encoding="utf-8"))))


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in TAKES_A_PATTERN:
            yield node


def _compiled(written: Written) -> Pattern | None:
    """None: it is put together of what only the function knows that has it."""
    call, names = written.call, vars(importlib.import_module(written.module))
    flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    if ast.unparse(call.func) == "re.compile":
        flags += call.args[1:]
    try:
        values = [eval(ast.unparse(part), names) for part in (call.args[0], *flags)]  # noqa: S307 - our own source
    except NameError:
        return None
    return re.compile(*values)


def _held(value: object, deep: int = 0) -> Iterator[Pattern]:
    """The patterns in what a module has made."""
    if isinstance(value, re.Pattern):
        yield value
    elif deep < DEEPEST:
        for part in _parts(value):
            yield from _held(part, deep + 1)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return value
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    return list(getattr(value, "__dict__", {}).values()) if not isinstance(value, ModuleType | type) else ()


def test_no_pattern_of_ours_takes_exponential_time() -> None:
    written = list(_written())
    compiled = [(one, _compiled(one)) for one in written]
    found = {(one.module, pattern.pattern): pattern for one, pattern in compiled if pattern is not None}
    for module in {one.module for one in written}:
        for value in vars(importlib.import_module(module)).values():
            found |= {(module, pattern.pattern): pattern for pattern in _held(value)}
    assert len(found) > 200, "they were not found, so that nothing would be tested"
    assert {key: why for key, pattern in found.items() if (why := doubt(pattern)) is not None} == {}


def test_every_pattern_is_known_but_those_that_are_put_together() -> None:
    unknown = [one for one in _written() if _compiled(one) is None]
    unforeseen = [one.text for one in unknown if not any(part in one.text for part in PUT_TOGETHER.get(one.module, ()))]
    assert unforeseen == []
    assert {one.module for one in unknown} == set(PUT_TOGETHER)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a*)*b",
        r"(?:a+)+b",
        r"(a|a)*b",
        r"(a|ab|b)*c",
        r"(?:a?b?)*c",
        r"(?:[.@/][\w.@/]*)*=",
        r"(?:\s*,?\s*\w*)*$",
        r"(?:[a-f]|(?i:[A-C]))*x",
        r"([^|]*\|?)*x",
    ],
)
def test_what_reads_a_text_in_ever_more_ways_is_found(pattern: str) -> None:
    assert doubt(re.compile(pattern)) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*b*c",
        r"(?:a|b)*c",
        r"(?:\w+(?:[.@/][\w\-.@/]*)?|/[\w\-.@/]*)=",
        r"(?:,\s*\w+)*$",
        r"(?:[^\"\\]|\\.)*\"",
        r"(?:a{1,3}b)*c",
    ],
)
def test_what_reads_it_in_one_way_is_not(pattern: str) -> None:
    assert doubt(re.compile(pattern)) is None
