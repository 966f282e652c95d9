"""The numbers of $((...)): whole numbers and their sums, told from the text. Nothing is run."""

import ast
import operator
from collections.abc import Callable

_LONGEST = 500
_BIGGEST = 2**63  # as in a shell


def _divided(one: int, other: int) -> int:
    """Towards zero, as in C."""
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divided,
    ast.Mod: lambda one, other: one - other * _divided(one, other),
}


def number_of(text: str) -> int | None:
    """What a sum of whole numbers comes to; None for anything else."""
    if len(text) > _LONGEST:
        return None
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _bounded(_OPERATIONS[type(node.op)](_value(node.left), _value(node.right)))
    raise ValueError("no sum of whole numbers")


def _bounded(value: int) -> int:
    if abs(value) >= _BIGGEST:
        raise ValueError("too big for a shell")
    return value
