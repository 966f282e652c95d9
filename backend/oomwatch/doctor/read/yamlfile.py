"""A YAML (or JSON) file as settings with the lines that they stand on, its scalars read as OmegaConf reads them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from oomwatch.doctor.read.reading import Complaint, ReadingError, Value
from oomwatch.yamlread import Constructor, Reader

MOST_CHARS = 150_000  # read in about a second at the worst; verl's largest file has 38 thousand


class Leaf(NamedTuple):
    key: str
    value: Value
    line: int


class YamlFile(NamedTuple):
    leaves: tuple[Leaf, ...]
    overrides: tuple[Leaf, ...] = ()  # of a list of overrides, whose keys are empty
    defaults: tuple[Leaf, ...] = ()  # of Hydra's defaults list, as "group: option" or a file's name
    complaints: tuple[Complaint, ...] = ()


def read_yaml(text: str, name: str) -> YamlFile:
    """What a file holds. Raises ReadingError for what is no YAML, or no configuration."""
    reader = Reader(lambda _kind, value: value)
    root = reader.compose(text)
    if root is None:
        first = reader.mistakes[0]
        raise ReadingError("no_yaml", name, first.line, reason=first.message)
    if isinstance(root, SequenceNode):
        items = tuple(Leaf("", value, line) for value, line in map(_item, root.value))
        return YamlFile((), overrides=items)
    if not isinstance(root, MappingNode):
        raise ReadingError("no_mapping", name, root.start_mark.line + 1)
    complaints = tuple(
        Complaint(what="duplicate_key", severity="error", name=name, line=line, values={"key": key})
        for key, line in _duplicates(root, "")
    )
    of_root = {str(key.value): child for key, child in root.value}
    leaves = tuple(leaf for leaf in _leaves(root, "") if leaf.key.split(".")[0] not in ("defaults", "hydra"))
    return YamlFile(leaves, defaults=tuple(_defaults(of_root.get("defaults"))), complaints=complaints)


def _item(node: Node) -> tuple[Value, int]:
    return _value(node), node.start_mark.line + 1


def _leaves(node: Node, above: str) -> Iterator[Leaf]:
    for key, child in _entries(node):
        inner = f"{above}{key.value}"
        if isinstance(child, MappingNode) and child.value:
            yield from _leaves(child, f"{inner}.")
        else:
            yield Leaf(inner, _value(child), key.start_mark.line + 1)


def _entries(node: Node) -> list[tuple[Node, Node]]:
    """A mapping's own entries, after those that "<<" brings."""
    merged: list[tuple[Node, Node]] = []
    own: list[tuple[Node, Node]] = []
    for key, child in node.value:
        if key.value == "<<":
            sources = child.value if isinstance(child, SequenceNode) else [child]
            for source in reversed(sources):
                merged += _entries(source) if isinstance(source, MappingNode) else []
        else:
            own.append((key, child))
    return [*merged, *own]


def _duplicates(node: Node, above: str) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    for key, child in node.value:
        if key.value in seen and key.value != "<<":
            yield f"{above}{key.value}", key.start_mark.line + 1
        seen.add(key.value)
        if isinstance(child, MappingNode):
            yield from _duplicates(child, f"{above}{key.value}.")


def _defaults(node: Node | None) -> Iterator[Leaf]:
    for entry in node.value if isinstance(node, SequenceNode) else ():
        line = entry.start_mark.line + 1
        if isinstance(entry, MappingNode):
            yield from (Leaf(str(key.value), _value(child), line) for key, child in entry.value)
        else:
            yield Leaf("", _value(entry), line)


def _value(node: Node) -> Value:
    if isinstance(node, SequenceNode):
        return [_value(child) for child in node.value]
    if isinstance(node, MappingNode):
        return {str(key.value): _value(child) for key, child in _entries(node)}
    return _scalar(node)


class _Scalars(Constructor):
    """PyYAML's, with OmegaConf's idea of a float ("1e-6" is one) and without times."""


_Scalars.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Scalars.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(?:_\d+)*(?:\.[\d_]*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _scalar(node: Node) -> Value:
    if not isinstance(node, ScalarNode) or node.style is not None:  # in quotes, or a block
        return str(node.value)
    loader = _Scalars()
    try:
        tag = loader.resolve(ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
        value = loader.construct_object(ScalarNode(tag, node.value))
    except (yaml.YAMLError, ValueError, OverflowError):
        return str(node.value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
