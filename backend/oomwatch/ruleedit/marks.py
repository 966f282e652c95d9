"""PURE: places in the text of a YAML file, and edits at them."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from oomwatch.yamlread import Reader


class EditError(ValueError):
    """The file cannot be changed like that. The text says why, and what to do."""


class Edit(NamedTuple):
    """What stands from `start` to `end` (characters) becomes `text`."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all of them made; they do not overlap."""
    parts, at = list[str](), 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


class Ranges:
    """Places of a text from one to another, which do not overlap: whether a place is within any."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._ranges = sorted(ranges)
        self._starts = [start for start, _ in self._ranges]

    def __contains__(self, place: int) -> bool:
        found = bisect_right(self._starts, place) - 1
        return found >= 0 and place < self._ranges[found][1]


def compose(text: str) -> MappingNode | None:
    """The document's node; None where the text is no YAML, or no mapping."""
    node = Reader(lambda _kind, value: value).compose(text)
    return node if isinstance(node, MappingNode) else None


def entry(node: Node | None, name: str) -> tuple[Node, Node] | None:
    """Key and value of a mapping's entry; None where there is none."""
    pairs = node.value if isinstance(node, MappingNode) else ()
    return next(((key, child) for key, child in pairs if key.value == name), None)


def value_of(node: Node | None, name: str) -> Node | None:
    found = entry(node, name)
    return found[1] if found else None


def word(node: Node | None) -> str | None:
    """What a plain value says."""
    return str(node.value) if isinstance(node, ScalarNode) else None


def items(node: Node | None) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else []


def scalars(node: Node | None) -> Iterator[ScalarNode]:
    """All plain values below a node, those of keys too. An alias is followed to where it points."""
    waiting = [node] if node is not None else []
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ScalarNode):
            yield one
        elif isinstance(one, MappingNode):
            waiting += [part for pair in one.value for part in pair]
        elif isinstance(one, SequenceNode):
            waiting += one.value


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def line_end(text: str, place: int) -> int:
    """Where the line of a place ends, before its line break."""
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    return end - 1 if end > place and text[end - 1] == "\r" else end


def content_end(text: str, node: Node) -> int:
    """Where the last thing of a node's own stands: PyYAML's mark lies behind the blank lines and comments after it."""
    while isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return len(text[: node.end_mark.index].rstrip())
