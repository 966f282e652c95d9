"""YAML into frozen structs, with every mistake reported at once by line and column.

msgspec says what is wrong with one value and stops. A person who edits a file wants all of it, with places: so structs
are taken apart here field by field, and msgspec reads the fields.
"""

import typing
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import Struct
from yaml import MappingNode, Node, ScalarNode, SequenceNode
from yaml.composer import ComposerError
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

NESTING_MAX = 30  # deeper than any rule; each level costs some frames of Python's stack
NODES_MAX = 20_000  # with every alias written out: twenty times what the shipped rules have, read in a second or two

T = TypeVar("T")
DecodeHook = Callable[[type, Any], Any]


class Mistake(NamedTuple):
    line: int  # from 1
    column: int  # from 1
    message: str


class MistakeFoundError(Exception):
    """Raised to leave a value that cannot be read; the mistake is already on the list."""


class _Loader(yaml.SafeLoader):
    """PyYAML's, which would follow any nesting until Python's stack is full, and any length."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._count = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self._depth, self._count = self._depth + 1, self._count + 1
        if self._depth > NESTING_MAX or self._count > NODES_MAX:
            wrong = _TOO_DEEP if self._depth > NESTING_MAX else _TOO_LARGE
            raise ComposerError(None, None, wrong, self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_TOO_DEEP = f"this is nested more than {NESTING_MAX} levels deep"
_TOO_LARGE = f"this is too large: more than {NODES_MAX} values, aliases written out"


class Reader:
    """Reads nodes into values and keeps the mistakes it met."""

    def __init__(self, decode: DecodeHook) -> None:
        self.mistakes: list[Mistake] = []
        self._decode = decode

    def compose(self, text: str) -> Node | None:
        """The document's node, whose keys are words; None where it is empty or unusable, which is a mistake too."""
        try:
            node = yaml.compose(text, Loader=_Loader)
        except yaml.reader.ReaderError as error:
            line, column = _place(text, error.position)
            self.mistakes.append(Mistake(line, column, f"this is no YAML: {error.reason}"))
            return None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            said = error.problem or error.context
            sentence = said if said in (_TOO_DEEP, _TOO_LARGE) else f"this is no YAML: {said}"
            self.mistakes.append(Mistake(line, column, str(sentence)))
            return None
        if node is None:
            self.mistakes.append(Mistake(1, 1, "the file is empty"))
            return None
        before = len(self.mistakes)
        self._check_shape(node)
        return node if len(self.mistakes) == before else None

    def _check_shape(self, root: Node) -> None:
        """Keys are words, and aliases neither lead in a circle nor multiply beyond all bounds."""
        waiting, count = [(root, 1)], 0
        while waiting:
            node, depth = waiting.pop()
            count += 1
            if depth > NESTING_MAX:
                return self.mistake(node, _TOO_DEEP)
            if count > NODES_MAX:
                return self.mistake(root, _TOO_LARGE)
            if isinstance(node, MappingNode):
                for key, child in node.value:
                    if not isinstance(key, ScalarNode):
                        self.mistake(key, f"a key must be a plain word, got {_shape(key)}")
                    waiting.append((child, depth + 1))
            elif isinstance(node, SequenceNode):
                waiting += [(child, depth + 1) for child in node.value]
        return None

    def mistake(self, node: Node, message: str) -> None:
        self.mistakes.append(Mistake(node.start_mark.line + 1, node.start_mark.column + 1, message))

    def value(self, node: Node, kind: Any) -> Any:
        """A value of this type. Raises MistakeFoundError."""
        kind = _bare(kind)
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self.struct(node, kind)
        if typing.get_origin(kind) is tuple and isinstance(node, SequenceNode):
            return self._tuple(node, typing.get_args(kind)[0])
        if tags := _tagged(kind):
            return self.struct(node, self._tagged_kind(node, tags))
        return self._plain(node, kind)

    def struct(self, node: Node, kind: type[T]) -> T:
        """A struct out of a mapping. Raises MistakeFoundError when anything of it is wrong; all of it is listed."""
        before = len(self.mistakes)
        entries = self._entries(node)
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}  # type: ignore[arg-type]
        tag_field = kind.__struct_config__.tag_field  # type: ignore[attr-defined]
        values: dict[str, Any] = {}
        for name, (key, child) in entries.items():
            if name in fields:
                try:
                    values[fields[name].name] = self.value(child, fields[name].type)
                except MistakeFoundError:
                    continue
            elif name != tag_field:
                self.mistake(key, _unknown(name, [*fields, *([tag_field] if tag_field else [])]))
        for name, field in fields.items():
            if field.required and name not in entries:
                self.mistake(node, f'"{name}" is missing')
        if len(self.mistakes) > before:
            raise MistakeFoundError
        try:
            return kind(**values)
        except ValueError as error:
            raise self._stop(node, str(error)) from error

    def _entries(self, node: Node) -> dict[str, tuple[Node, Node]]:
        if not isinstance(node, MappingNode):
            raise self._stop(node, f"expected a mapping (name: value), got {_shape(node)}")
        entries: dict[str, tuple[Node, Node]] = {}
        for key, child in node.value:
            if key.value in entries:
                self.mistake(key, f'"{key.value}" is given twice')
            entries[str(key.value)] = (key, child)
        return entries

    def _tuple(self, node: SequenceNode, kind: Any) -> tuple[Any, ...]:
        values = []
        failed = False
        for child in node.value:
            try:
                values.append(self.value(child, kind))
            except MistakeFoundError:
                failed = True
        if failed:
            raise MistakeFoundError
        return tuple(values)

    def _tagged_kind(self, node: Node, tags: dict[str, type[Struct]]) -> type[Struct]:
        tag_field = next(iter(tags.values())).__struct_config__.tag_field or "kind"
        given = self._entries(node).get(tag_field)
        if given is None:
            raise self._stop(node, f'"{tag_field}" is missing; it is one of {", ".join(tags)}')
        if not isinstance(given[1], ScalarNode):
            raise self._stop(given[1], f"{tag_field} must be one of {', '.join(tags)}, got {_shape(given[1])}")
        tag = given[1].value
        if tag not in tags:
            raise self._stop(given[1], _unknown(tag, list(tags), what=tag_field))
        return tags[tag]

    def _plain(self, node: Node, kind: Any) -> Any:
        if typing.get_origin(kind) is typing.Literal and node.value not in typing.get_args(kind):
            raise self._stop(node, f"expected one of {', '.join(typing.get_args(kind))}, got {_shape(node)}")
        try:
            value = plain(node)
        except Exception as error:  # PyYAML's constructors raise what comes: `!!timestamp x`, `!!int ""`, `!!bool 7`
            raise self._stop(node, f"cannot be read: {_sentence(error)}") from error
        try:
            return msgspec.convert(value, kind, dec_hook=self._decode)
        except ValueError as error:
            raise self._stop(node, _sentence(error)) from error

    def _stop(self, node: Node, message: str) -> MistakeFoundError:
        self.mistake(node, message)
        return MistakeFoundError()


class Constructor(SafeConstructor, Resolver):
    """From nodes to data as yaml.SafeLoader does it, which would also set about reading a text for each of them."""

    def __init__(self) -> None:
        SafeConstructor.__init__(self)
        Resolver.__init__(self)


def plain(node: Node) -> Any:
    """The Python data of a node, as yaml.safe_load would give it."""
    return Constructor().construct_document(node)


def shipped(text: str) -> object:
    """The data of a YAML file of ours. libyaml reads it in an eighth of the time, where PyYAML was built with it."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe both


def merged(base: Node, change: Node) -> Node:
    """A mapping with the entries of another put over it, mappings within it likewise; places stay those of the file."""
    if not (isinstance(base, MappingNode) and isinstance(change, MappingNode)):
        return change
    entries = {key.value: (key, child) for key, child in base.value}
    for key, child in change.value:
        old = entries.get(key.value)
        entries[key.value] = (key, merged(old[1], child) if old else child)
    return MappingNode(base.tag, list(entries.values()), change.start_mark, change.end_mark)


def _bare(kind: Any) -> Any:
    """A type without "or None"."""
    members = [member for member in typing.get_args(kind) if member is not type(None)]
    return members[0] if type(None) in typing.get_args(kind) and len(members) == 1 else kind


def _tagged(kind: Any) -> dict[str, type[Struct]]:
    members = typing.get_args(kind)
    if members and all(isinstance(member, type) and issubclass(member, Struct) for member in members):
        return {str(member.__struct_config__.tag): member for member in members}
    return {}


def _unknown(name: str, known: list[str], *, what: str = "key") -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    return f'unknown {what} "{name}"; {hint}'


def _sentence(error: Exception) -> str:
    return (getattr(error, "problem", None) or str(error)).split(" - at `")[0]


def _place(text: str, position: int) -> tuple[int, int]:
    """Line and column of a character, from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")


def _shape(node: Node) -> str:
    return (
        "a list"
        if isinstance(node, SequenceNode)
        else f'"{node.value}"'
        if isinstance(node, ScalarNode)
        else "a mapping"
    )
