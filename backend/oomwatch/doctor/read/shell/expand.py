"""Words with what the script itself says of their variables. What it does not say stays as written, and is named."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from oomwatch.doctor.read.reading import ReadingError
from oomwatch.doctor.read.shell.arithmetic import number_of
from oomwatch.doctor.read.shell.scan import Part, Scanner, Word

_BRACES = re.compile(r"([A-Za-z_]\w*|\d+|[@*])(\[[@*]\])?(?:(:?[-=+?])(.*))?", re.ASCII | re.DOTALL)
_IN_SUMS = re.compile(r"\$?\{?([A-Za-z_]\w*)\}?", re.ASCII)
_OF_THE_CALL = frozenset({"@", "*"})  # what the script is started with: the doctor's own overrides stand for that
MOST_CHARS = 1_000_000  # that variables may make of a script
_WORD_CHARS = 16  # that a word costs beside its own: arrays may hold very many short ones
_DEEPEST = 20


class Text(NamedTuple):
    """What a word became."""

    text: str
    line: int
    unresolved: tuple[str, ...] = ()  # variables that the script does not tell
    doubtful: tuple[str, ...] = ()  # that it sets in a branch


class Bound(NamedTuple):
    """What a variable holds: one text, or those of an array."""

    items: tuple[Text, ...]
    array: bool = False
    doubtful: bool = False


class _Field(NamedTuple):
    text: str
    quoted: bool
    unresolved: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


class Variables:
    """The script's variables at a moment of reading it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bound: dict[str, Bound] = {}
        self._made = 0

    def bind(self, name: str, bound: Bound) -> None:
        self._bound[name] = bound

    def get(self, name: str) -> Bound | None:
        return self._bound.get(name)

    def one(self, word: Word) -> Text:
        """A word as one text, as on the right side of an assignment."""
        pieces = [piece for part in word.parts for piece in self._pieces(part, 0)]
        return self._text(pieces, word.line)

    def many(self, word: Word) -> list[Text]:
        """A word of a command: none, one or several, since values without quotes are cut at blanks."""
        found: list[list[_Field]] = []
        open_ = False
        for part in word.parts:
            for piece in self._fields(part):
                if piece is None:
                    open_ = False
                elif open_:
                    found[-1].append(piece)
                else:
                    found.append([piece])
                    open_ = True
        return [self._text(pieces, word.line) for pieces in found]

    def _fields(self, part: Part) -> Iterator[_Field | None]:
        """Pieces of a word; None where it is cut."""
        items = self._array_items(part) if part.kind == "variable" else None
        if items is None:
            pieces = self._pieces(part, 0)
        else:
            pieces = [_Field(item.text, part.quoted, item.unresolved, item.doubtful) for item in items]
        for number, piece in enumerate(pieces):
            if number and items is not None:
                yield None
            yield from [piece] if piece.quoted or part.kind == "text" else _cut(piece)

    def _array_items(self, part: Part) -> tuple[Text, ...] | None:
        """The items that become words of their own; None for what is one text."""
        match = _BRACES.fullmatch(part.text)
        if part.text[:1] in _OF_THE_CALL:
            return ()
        if match is None or match[3]:
            return None
        bound = self._bound.get(match[1])
        apart = match[2] == "[@]" or (match[2] == "[*]" and not part.quoted)
        return bound.items if bound is not None and apart else None

    def _pieces(self, part: Part, depth: int) -> list[_Field]:
        if part.kind == "text":
            return [_Field(part.text, part.quoted)]
        if depth > _DEEPEST:
            return [self._unknown(part)]
        if part.kind == "arithmetic":
            return [self._sum(part, depth)]
        return self._variable(part, depth) if part.kind == "variable" else [self._unknown(part)]

    def _variable(self, part: Part, depth: int) -> list[_Field]:
        match = _BRACES.fullmatch(part.text)
        if match is None:
            return [self._unknown(part)]
        name, _, operator, other = match.groups()
        bound = self._bound.get(name)
        has = bound is not None and (
            bool(operator is None or ":" not in operator) or any(one.text for one in bound.items)
        )
        if operator is not None and operator[-1] == "+":
            return self._other(other, part, depth) if has else []
        if has and bound is not None:
            return [self._of(bound, name, part)]
        if name in _OF_THE_CALL:
            return []
        return (
            self._other(other, part, depth) if operator is not None and operator[-1] in "-=" else [self._unknown(part)]
        )

    def _of(self, bound: Bound, name: str, part: Part) -> _Field:
        unresolved = tuple(one for item in bound.items for one in item.unresolved)
        doubtful = tuple(one for item in bound.items for one in item.doubtful)
        items = bound.items if "[" in part.text else bound.items[:1]
        text = " ".join(item.text for item in items)
        return _Field(text, part.quoted, unresolved, (*doubtful, name) if bound.doubtful else doubtful)

    def _other(self, text: str, part: Part, depth: int) -> list[_Field]:
        """The text that stands for a variable that is not set."""
        words = [token for token in Scanner(text, self._name).tokens() if isinstance(token, Word)]
        pieces: list[_Field] = []
        for number, word in enumerate(words):
            pieces += [_Field(" ", part.quoted)] if number else []
            pieces += [piece for inner in word.parts for piece in self._pieces(inner, depth + 1)]
        return [piece._replace(quoted=piece.quoted or part.quoted) for piece in pieces]

    def _sum(self, part: Part, depth: int) -> _Field:
        doubtful: list[str] = []

        def told(match: re.Match[str]) -> str:
            found = self._variable(Part("variable", match[1]), depth + 1)
            doubtful.extend(name for piece in found for name in piece.doubtful)
            return f"({''.join(piece.text for piece in found)})"

        number = number_of(_IN_SUMS.sub(told, part.text))
        return self._unknown(part) if number is None else _Field(str(number), part.quoted, (), tuple(doubtful))

    def _unknown(self, part: Part) -> _Field:
        """As it is written, but never as something that looks like a reference of Hydra's."""
        name = re.match(r"\w*", part.text, re.ASCII)
        text = f"${name[0] if name else ''}" if part.kind == "variable" else f"$({part.text})"
        return _Field(text, quoted=True, unresolved=(part.text.strip()[:60],))

    def _text(self, pieces: list[_Field], line: int) -> Text:
        text = "".join(piece.text for piece in pieces)
        self._made += len(text) + _WORD_CHARS
        if self._made > MOST_CHARS:
            raise ReadingError("expands_too_far", self._name, line)
        unresolved = tuple(dict.fromkeys(name for piece in pieces for name in piece.unresolved))
        return Text(text, line, unresolved, tuple(dict.fromkeys(name for piece in pieces for name in piece.doubtful)))


def _cut(piece: _Field) -> Iterator[_Field | None]:
    """A value without quotes at its blanks."""
    for number, text in enumerate(re.split(r"[ \t\n]+", piece.text)):
        if number:
            yield None
        if text:
            yield piece._replace(text=text)
