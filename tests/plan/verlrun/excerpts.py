"""Parts of verl's own source, taken from the installed release and run as they are.

Where a class cannot be built without GPUs, its checks can: they are statements that read the configuration.
"""

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Names = dict[str, Any]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def function(path: Path, name: str) -> ast.FunctionDef:
    """`Class.method` or `function` of a file."""
    body: Sequence[ast.stmt] = tree_of(path).body
    for part in name.split("."):
        found = next(node for node in body if getattr(node, "name", None) == part)
        body = getattr(found, "body", ())
    assert isinstance(found, ast.FunctionDef)
    return found


def class_of(path: Path, name: str) -> ast.stmt | None:
    """A class or function of a file, where it has one of that name."""
    return next((node for node in tree_of(path).body if getattr(node, "name", None) == name), None)


def run(statements: Sequence[ast.stmt], names: Names) -> None:
    """Run statements with these names; what they assign is in `names` afterwards."""
    module = ast.Module(body=list(statements), type_ignores=[])
    exec(compile(ast.fix_missing_locations(module), "verl", "exec"), names)  # noqa: S102 - verl's own code is the point


def about(statements: Sequence[ast.stmt], *words: str) -> list[ast.stmt]:
    """The statements that name any of these."""
    return [one for one in statements if any(word in ast.unparse(one) for word in words)]


def refusals(statements: Sequence[ast.stmt], *words: str) -> list[ast.stmt]:
    """What asserts or raises anything about these words, with the conditions around it, and nothing else."""
    return [kept for one in statements if (kept := _pruned(one, words)) is not None]


def _pruned(one: ast.stmt, words: tuple[str, ...]) -> ast.stmt | None:
    if isinstance(one, ast.Assert | ast.Raise):
        return one if any(word in ast.unparse(one) for word in words) else None
    if isinstance(one, ast.If):
        body, orelse = refusals(one.body, *words), refusals(one.orelse, *words)
        return ast.If(one.test, body or [ast.Pass()], orelse) if body or orelse else None
    return None


def leading_to(statements: Sequence[ast.stmt], word: str, *also: str) -> list[ast.stmt]:
    """The assertion about a word, and before it the assignments of the names that it needs, and of these."""
    block = next(body for body in _bodies(statements) if any(_asserts(one, word) for one in body))
    end = next(index for index, one in enumerate(block) if _asserts(one, word))
    kept, needed = [block[end]], _loads(block[end]) | {*also}
    for one in reversed(block[:end]):
        made = {name.id for name in ast.walk(one) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        if made & needed and isinstance(one, ast.Assign | ast.AnnAssign):
            kept.insert(0, one)
            needed |= _loads(one)
    return kept


def up_to(statements: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """The block in which a name is assigned, up to there."""
    for body in _bodies(statements):
        for index, one in enumerate(body):
            target = one.target if isinstance(one, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and target.id == name:
                return list(body[: index + 1])
    raise LookupError(name)


def _asserts(one: ast.stmt, word: str) -> bool:
    return isinstance(one, ast.Assert) and word in ast.unparse(one.test)


def _bodies(statements: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    yield statements
    for one in statements:
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(one, field, None)
            if inner:
                yield from _bodies(inner)


def _loads(one: ast.stmt) -> set[str]:
    return {name.id for name in ast.walk(one) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)}
