"""References between settings ("${data.max_prompt_length}"), followed as OmegaConf follows them. Nothing is evaluated.

Of OmegaConf's own resolvers the pure ones are known; `oc.env` gives its default, because the environment that the
training will have is not this one. verl registers none of its own.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from oomwatch.doctor.read.grammar import NoOverrideError, parse_value
from oomwatch.doctor.read.reading import UNTOLD, Value
from oomwatch.doctor.read.tree import Tree

_DEEPEST = 40
_MOST_STEPS = 100_000  # settings looked at for one configuration
_LONGEST = 10_000  # characters of a value
_HOLDS = frozenset("\"'{[()]}")  # in and behind which a comma may be no end
_ALONE = re.compile(r"\$\{[^{}\"']*\}")  # as nearly all are: nothing within it has ends of its own


class UnresolvedError(Exception):
    """A reference that leads nowhere that can be known. `what` is as in Complaint."""

    def __init__(self, what: str, reference: str) -> None:
        super().__init__(what)
        self.what = what
        self.reference = reference


class _Piece(NamedTuple):
    text: str
    refers: bool  # the inside of ${...}


class References:
    """Follows the references of one configuration, each once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: dict[str, Value | UnresolvedError] = {}
        self._following: list[str] = []
        self._steps = 0
        self._depth = 0

    def value(self, key: str) -> Value:
        """What a leaf comes to. Raises UnresolvedError, and KeyError where there is no such leaf."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise UnresolvedError("references_too_deep", str(self._tree[key].value)[:100])
        if key not in self._known:
            self._known[key] = self._followed(key)
        found = self._known[key]
        if isinstance(found, UnresolvedError):
            raise found
        return found

    def found(self, key: str) -> Value:
        """What is at a key, references above it followed too. Raises UnresolvedError, and KeyError for nothing."""
        parts = key.split(".")
        for end in range(1, len(parts) + 1):
            above = ".".join(parts[:end])
            if above in self._tree and (leaf := self._tree.get(above)) is not None:
                value = leaf.value if end < len(parts) and leaf.value == UNTOLD else self.value(above)
                return _inside(value, parts[end:])
        return self._tree.nested(key, lambda one: self._tree[one].value)

    def _followed(self, key: str) -> Value | UnresolvedError:
        raw = self._tree[key].value
        if key in self._following:
            return UnresolvedError("circular_reference", str(raw))
        self._following.append(key)
        try:
            return self._resolved(raw, key)
        except UnresolvedError as error:
            return error
        finally:
            self._following.pop()

    def _resolved(self, raw: Value, key: str) -> Value:
        if isinstance(raw, str) and "${" in raw:
            return self._text(raw, key)
        if isinstance(raw, list):
            return [self._resolved(one, key) for one in raw]
        return {name: self._resolved(one, key) for name, one in raw.items()} if isinstance(raw, dict) else raw

    def _text(self, raw: str, key: str) -> Value:
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise UnresolvedError("references_too_deep", raw[:100])
            return self._joined(raw, key)
        finally:
            self._depth -= 1

    def _joined(self, raw: str, key: str) -> Value:
        pieces = _pieces(raw)
        values = [self._reference(piece.text, key) if piece.refers else piece.text for piece in pieces]
        if len(values) == 1:
            return values[0]
        whole = "".join("None" if value is None else str(value) for value in values)
        if len(whole) > _LONGEST:
            raise UnresolvedError("references_too_deep", raw[:100])
        return whole

    def _reference(self, inside: str, key: str) -> Value:
        name, colon, arguments = inside.partition(":")
        if not colon:
            return self._at(self._plain(inside.strip(), key), key)
        resolver = self._resolvers().get(name.strip())
        if resolver is None:
            raise UnresolvedError("unknown_resolver", "${" + inside + "}")
        return resolver(_arguments(arguments), key)

    def _resolvers(self) -> dict[str, Callable[[list[str], str], Value]]:
        return {
            "oc.select": self._select,
            "oc.env": self._env,
            "oc.decode": lambda given, key: _decoded(self._argument(given[0], key)) if given else None,
            "oc.create": lambda given, key: self._argument(given[0], key) if given else None,
            "oc.deprecated": lambda given, key: self._at(self._plain(given[0], key), key) if given else None,
            "oc.dict.keys": lambda given, key: list(self._section(given, key)),
            "oc.dict.values": lambda given, key: list(self._section(given, key).values()),
        }

    def _select(self, given: list[str], key: str) -> Value:
        place = self._plain(given[0], key) if given else ""
        try:
            return self._at(place, key)
        except UnresolvedError as error:
            there = self._tree.get(self._absolute(place, key))
            if error.what != "broken_reference" or (there is not None and there.value != UNTOLD):
                raise
        return self._argument(given[1], key) if len(given) > 1 else None

    def _env(self, given: list[str], key: str) -> Value:
        if len(given) < 2:  # noqa: PLR2004 - the variable and its default
            raise UnresolvedError("environment", given[0] if given else "")
        default = self._argument(given[1], key)
        return default if default is None else str(default)

    def _section(self, given: list[str], key: str) -> dict[str, Value]:
        found = self._at(self._plain(given[0], key), key) if given else None
        return found if isinstance(found, dict) else {}

    def _argument(self, text: str, key: str) -> Value:
        try:
            value = parse_value(text) if "${" not in text else text
        except NoOverrideError:
            return text
        return self._resolved(value, key)

    def _plain(self, text: str, key: str) -> str:
        """A key that may itself be told by references."""
        return str(self._text(text, key)) if "${" in text else text.strip().strip("\"'")

    def _absolute(self, place: str, key: str) -> str:
        """ ".x" is beside the key that refers, "..x" one level further up."""
        if not place.startswith("."):
            return place.replace("[", ".").replace("]", "")
        rest = place.lstrip(".")
        above = key.split(".")[: -(len(place) - len(rest))]
        return ".".join([*above, rest] if rest else above)

    def _at(self, place: str, key: str) -> Value:
        target = self._absolute(place, key)
        found = self._tree.get(target)
        if found is not None:
            if found.value == UNTOLD:
                raise UnresolvedError("broken_reference", place)
            return self.value(target)
        try:
            return self._tree.nested(target, self.value)
        except KeyError:
            return self._within(target, place)

    def _within(self, target: str, place: str) -> Value:
        """An item of a list, or below a setting that itself refers to a section."""
        above, _, last = target.rpartition(".")
        if not above:
            raise UnresolvedError("broken_reference", place)
        holder = self._at(above, "")
        found: Value = None
        if isinstance(holder, dict) and last in holder:
            found = holder[last]
        elif isinstance(holder, list) and last.isdecimal() and int(last) < len(holder):
            found = holder[int(last)]
        else:
            raise UnresolvedError("broken_reference", place)
        return found


def _inside(value: Value, names: list[str]) -> Value:
    for name in names:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise KeyError(name)
    return value


def _decoded(value: Value) -> Value:
    try:
        return parse_value(value) if isinstance(value, str) else value
    except NoOverrideError as error:
        raise UnresolvedError("broken_reference", str(value)[:100]) from error


def _pieces(raw: str) -> list[_Piece]:
    """A text cut at its references, whose braces may hold others. A backslash takes a reference its meaning."""
    found, at = [], 0
    while (start := raw.find("${", at)) >= 0:
        before = raw[at:start]
        escapes = len(before) - len(before.rstrip("\\"))
        before = before[: len(before) - escapes + escapes // 2]
        end = _closing(raw, start) if escapes % 2 == 0 else start + 1
        if before:
            found.append(_Piece(before, refers=False))
        found.append(_Piece("${", refers=False) if escapes % 2 else _Piece(raw[start + 2 : end], refers=True))
        at = end + 1
    return [*found, _Piece(raw[at:], refers=False)] if at < len(raw) else found


def _closing(raw: str, start: int) -> int:
    if (alone := _ALONE.match(raw, start)) is not None:
        return alone.end() - 1
    depth, quote = 0, ""
    for at in range(start, len(raw)):
        letter = raw[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "{}":
            depth += 1 if letter == "{" else -1
            if depth == 0:
                return at
    raise UnresolvedError("broken_reference", raw[start : start + 100])


def _arguments(text: str) -> list[str]:
    """Cut at the commas that stand in no bracket and in no quotes."""
    if _HOLDS.isdisjoint(text):
        return [part.strip() for part in text.split(",")]
    found, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "{[(":
            depth += 1
        elif letter in "}])":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]
