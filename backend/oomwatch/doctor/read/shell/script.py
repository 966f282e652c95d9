"""A script's commands with their words, as far as they can be told without running it."""

import re
from typing import NamedTuple

from oomwatch.doctor.read.reading import Complaint
from oomwatch.doctor.read.shell.expand import Bound, Text, Variables
from oomwatch.doctor.read.shell.scan import Operator, Part, Scanner, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_DECLARING = frozenset({"export", "local", "declare", "readonly", "typeset"})
_PREFIXES = frozenset({"then", "else", "do", "!", "{", "time", "elif"})
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})


class Command(NamedTuple):
    words: tuple[Text, ...]
    line: int
    cut_by: str | None = None  # "comment" or "blank": what ended it where a backslash was meant to go on


class Script(NamedTuple):
    commands: tuple[Command, ...]
    complaints: tuple[Complaint, ...] = ()


def read_script(text: str, name: str) -> Script:
    """The commands of a script, in its order. Raises ReadingError for what no shell would read."""
    reader = _Reader(name)
    words: list[Word] = []
    before = ""
    for token in [*Scanner(text, name).tokens(), Operator("\n", 0)]:
        if isinstance(token, Word):
            words.append(token)
            continue
        if words:
            reader.take(words, token, before)
        words, before = [], token.text
    return Script(tuple(reader.commands), tuple(reader.complaints))


class _Reader:
    def __init__(self, name: str) -> None:
        self.commands: list[Command] = []
        self.complaints: list[Complaint] = []
        self._name = name
        self._variables = Variables(name)
        self._depth = 0

    def take(self, words: list[Word], end: Operator, before: str) -> None:
        """One command, with the operator that ends it and the one that stands before it."""
        rest = self._without_flow(words)
        unsure = self._depth > 0 or before in ("&&", "||")
        declaring = bool(rest) and rest[0].written in _DECLARING
        if declaring:
            rest = [word for word in rest[1:] if not word.written.startswith("-")]
        assigned = []
        while rest and (match := _assignment(rest[0])):
            assigned.append((rest.pop(0), match))
        if not rest or declaring:
            for word, match in assigned:
                self._assign(word, match, unsure=unsure)
            return
        self._command(rest, end)

    def _without_flow(self, words: list[Word]) -> list[Word]:
        """Without the words that open and close branches and loops."""
        rest = list(words)
        while rest and (first := rest[0].written) in _PREFIXES | _OPENING | _CLOSING | {"}"}:
            rest.pop(0)
            if first in _OPENING:
                self._depth += 1
            elif first in _CLOSING:
                self._depth = max(0, self._depth - 1)
            if first in ("for", "case", "select"):
                return []
        return rest

    def _assign(self, word: Word, match: re.Match[str], *, unsure: bool) -> None:
        name, adds = match[1], bool(match[2])
        old = self._variables.get(name) if adds else None
        if word.array is not None:
            items = tuple(text for item in word.array for text in self._variables.many(item))
            bound = Bound((*(old.items if old else ()), *items), array=True, doubtful=unsure)
        else:
            value = self._variables.one(_after(word, match.end()))
            if old is not None and not old.array:
                value = value._replace(
                    text=old.items[0].text + value.text, unresolved=(*old.items[0].unresolved, *value.unresolved)
                )
            bound = Bound((value,), doubtful=unsure)
        self._variables.bind(name, bound)

    def _command(self, words: list[Word], end: Operator) -> None:
        first = words[0].written
        if first in ("source", ".") and len(words) > 1:
            target = self._variables.one(words[1]).text
            self.complaints.append(
                Complaint(what="sourced", severity="info", name=self._name, line=words[0].line, values={"file": target})
            )
        texts = tuple(text for word in words for text in self._variables.many(word))
        cut_by = "comment" if end.comment else "blank" if end.blank_escaped else None
        if texts:
            self.commands.append(Command(texts, words[0].line, cut_by))


def _assignment(word: Word) -> re.Match[str] | None:
    first = word.parts[0] if word.parts else None
    return _ASSIGNMENT.match(first.text) if first and first.kind == "text" and not first.quoted else None


def _after(word: Word, start: int) -> Word:
    """The right side of an assignment."""
    first = word.parts[0]
    return Word((Part("text", first.text[start:]), *word.parts[1:]), word.line)
