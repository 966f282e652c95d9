"""The configuration that verl's driver prints at its start, out of a log with its envelopes and other lines between.

The log is read by the agent's own parser. The text is a Python literal: it is taken apart, never evaluated.
"""

import ast
from collections.abc import Iterator
from typing import Any

from oomwatch.doctor.read.layers import Placing
from oomwatch.doctor.read.reading import Origin, ReadingError, Value
from oomwatch_agent.logs.config_text import Printed, PrintedConfig
from oomwatch_agent.logs.envelope import unwrap


def read_printed(text: str, name: str, first_line: int) -> tuple[Placing, ...]:
    """The settings of a printed configuration with the log's lines. Raises ReadingError where it is cut off."""
    printed = _collected(text, first_line)
    try:
        tree = None if printed is None else ast.parse(printed.text, mode="eval").body
        if printed is None or not isinstance(tree, ast.Dict):
            raise ReadingError("printed_cut", name, first_line)
        return tuple(_placings(tree, "", name, printed.numbers))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ReadingError("printed_cut", name, first_line) from error


def _collected(text: str, first_line: int) -> Printed | None:
    config = PrintedConfig()
    for number, line in enumerate(text.splitlines(), first_line):
        record = unwrap(line)
        if (whole := config.collect(record, number)) is not None:
            return whole
    lines = text.split("\n")
    # A dict that was copied without its log, or begins with another section.
    return (
        Printed(text.strip(), tuple(range(first_line, first_line + len(lines)))) if text.lstrip()[:2] == "{'" else None
    )


def _placings(tree: ast.Dict, above: str, name: str, numbers: tuple[int, ...]) -> Iterator[Placing]:
    for key, child in zip(tree.keys, tree.values, strict=True):
        if key is None:
            raise ValueError("no literal")
        inner = f"{above}{ast.literal_eval(key)}"
        if isinstance(child, ast.Dict) and child.keys:
            yield from _placings(child, f"{inner}.", name, numbers)
        else:
            line = numbers[min(key.lineno, len(numbers)) - 1]
            yield Placing(inner, _json(ast.literal_eval(child)), Origin(kind="printed", name=name, line=line))


def _json(value: Any) -> Value:  # noqa: ANN401 - any literal
    if isinstance(value, list | tuple | set | frozenset):
        return [_json(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _json(one) for key, one in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
