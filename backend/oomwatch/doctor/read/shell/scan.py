"""A script's text to words and operators, by the quoting rules of POSIX shells and of bash."""

import itertools
import re
from typing import Literal, NamedTuple

from oomwatch.doctor.read.reading import ReadingError

PartKind = Literal["text", "variable", "arithmetic", "command"]
Ending = Literal["newline", "comment", "operator"]
_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")")
_REDIRECTIONS = ("<<<", "<<-", "<<", ">>", ">&", "<&", ">|", "&>>", "&>", ">", "<")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_BLANK = " \t"
_PLAIN = re.compile(r"""[^\s;|&<>()\\'"$`]+""")
_PLAIN_IN_QUOTES = re.compile(r"""[^"$`\\]+""")


class Part(NamedTuple):
    """A piece of a word. `text` is what it says: the text, or what stands in ${...}, $((...)) or $(...)."""

    kind: PartKind
    text: str
    quoted: bool = False


class Word(NamedTuple):
    parts: tuple[Part, ...]
    line: int
    array: "tuple[Word, ...] | None" = None  # of NAME=(...)

    @property
    def written(self) -> str:
        """Its plain text; variables as "$"."""
        return "".join(part.text if part.kind == "text" else "$" for part in self.parts)


class Operator(NamedTuple):
    text: str  # "\n" for the end of a line
    line: int
    comment: bool = False  # a comment stood before the end of the line
    blank_escaped: bool = False  # the line ended in a backslash and a blank


Token = Word | Operator


class Scanner:
    """One pass over a text. Raises ReadingError for quotes and brackets that are not closed."""

    def __init__(self, text: str, name: str, line: int = 1) -> None:
        self._text = text
        self._name = name
        self._at = 0
        self._line = line
        self._documents: list[tuple[str, bool]] = []  # here-documents whose text begins with the next line

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while self._at < len(self._text):
            token = self._token()
            if token is not None:
                found.append(token)
        return found

    def _token(self) -> Token | None:
        letter, line = self._text[self._at], self._line
        if letter in _BLANK or self._continues():
            self._at += 1
        elif letter == "\n":
            self._newline()
            return Operator("\n", line, blank_escaped=self._ended_in_escaped_blank())
        elif letter == "#":
            self._at = self._end_of_line()
            self._newline()
            return Operator("\n", line, comment=True)
        elif self._redirected():
            return None
        elif operator := self._starting(_OPERATORS):
            self._at += len(operator)
            return Operator(operator, line)
        else:
            return self._word()
        return None

    def _ended_in_escaped_blank(self) -> bool:
        """Whether the line that just ended has a backslash and blanks where the backslash alone was meant."""
        whole = self._text[self._text.rfind("\n", 0, self._at - 1) + 1 : self._at - 1]
        return whole.rstrip(_BLANK).endswith("\\") and whole[-1:] in ("\t", " ")

    def _continues(self) -> bool:
        """Skips a backslash before the end of a line, save its last character."""
        if self._text.startswith("\\\n", self._at):
            self._at += 1
            self._line += 1
            return True
        return False

    def _starting(self, with_: tuple[str, ...]) -> str | None:
        return next((one for one in with_ if self._text.startswith(one, self._at)), None)

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _newline(self) -> None:
        self._at += 1
        self._line += 1
        for ending, tabs in self._documents:
            while self._at < len(self._text):
                end = self._end_of_line()
                line = self._text[self._at : end]
                self._at, self._line = end + 1, self._line + 1
                if (line.lstrip("\t") if tabs else line) == ending:
                    break
        self._documents = []

    def _redirected(self) -> bool:
        """Skips a redirection with its target; of a here-document the text is skipped too."""
        start = self._at
        while self._text[self._at : self._at + 1].isdigit():
            self._at += 1
        operator = self._starting(_REDIRECTIONS)
        if operator is None:
            self._at = start
            return False
        self._at += len(operator)
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        if self._text[self._at : self._at + 1] not in ("", "\n", "("):
            target = self._word()
            if operator in ("<<", "<<-"):
                self._documents.append(("".join(part.text for part in target.parts), operator == "<<-"))
        return True

    def _word(self) -> Word:
        line, parts = self._line, list[Part]()
        while self._at < len(self._text) and not self._at_end_of_word():
            if self._text[self._at] == "(" and parts and parts[-1].text.endswith("=") and len(parts) == 1:
                return Word(tuple(parts), line, array=self._array())
            parts += self._parts()
        return Word(tuple(_joined(parts)), line)

    def _at_end_of_word(self) -> bool:
        letter = self._text[self._at]
        if letter == "(" and self._text[self._at - 1] == "=":
            return False
        return letter in " \t\n;|&<>()" and not self._continues_here()

    def _continues_here(self) -> bool:
        return self._text.startswith("\\\n", self._at)

    def _array(self) -> "tuple[Word, ...]":
        start = self._line
        self._at += 1
        items: list[Word] = []
        while self._at < len(self._text):
            if self._text[self._at] == ")":
                self._at += 1
                return tuple(items)
            token = self._token()
            if isinstance(token, Word):
                items.append(token)
        raise ReadingError("unclosed", self._name, start, sign="(")

    def _parts(self) -> list[Part]:
        letter = self._text[self._at]
        if letter == "\\":
            return self._escaped()
        if letter == "'":
            return [Part("text", self._until("'"), quoted=True)]
        if letter == '"':
            return self._double_quoted()
        if letter in "$`":
            return [self._expansion(quoted=False)]
        run = _PLAIN.match(self._text, self._at)
        text = run[0] if run else letter
        self._at += len(text)
        return [Part("text", text)]

    def _escaped(self) -> list[Part]:
        if self._continues_here():
            self._at += 2
            self._line += 1
            return []
        letter = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        return [Part("text", letter, quoted=True)]

    def _until(self, quote: str) -> str:
        """The text up to a quote, within which nothing has a meaning."""
        end = self._text.find(quote, self._at + 1)
        if end < 0:
            raise ReadingError("unclosed", self._name, self._line, sign=quote)
        found = self._text[self._at + 1 : end]
        self._at = end + 1
        self._line += found.count("\n")
        return found

    def _double_quoted(self) -> list[Part]:
        start, parts = self._line, list[Part]()
        self._at += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == '"':
                self._at += 1
                return parts or [Part("text", "", quoted=True)]
            if letter in "$`":
                parts.append(self._expansion(quoted=True))
                continue
            if letter == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                self._at += 1
                letter = "" if self._text[self._at] == "\n" else self._text[self._at]
            self._line += self._text[self._at] == "\n"
            self._at += 1
            parts.append(Part("text", letter, quoted=True))
            if run := _PLAIN_IN_QUOTES.match(self._text, self._at):
                self._at, self._line = run.end(), self._line + run[0].count("\n")
                parts.append(Part("text", run[0], quoted=True))
        raise ReadingError("unclosed", self._name, start, sign='"')

    def _expansion(self, *, quoted: bool) -> Part:
        if self._text[self._at] == "`":
            return Part("command", self._until("`"), quoted)
        after = self._text[self._at + 1 : self._at + 2]
        if self._text.startswith("$((", self._at):
            return Part("arithmetic", self._bracketed("(", ")")[1:-1], quoted)
        if after == "(":
            return Part("command", self._bracketed("(", ")"), quoted)
        if after == "{":
            return Part("variable", self._bracketed("{", "}"), quoted)
        if after == "'" and not quoted:
            self._at += 1
            return Part("text", self._until("'"), quoted=True)
        return self._bare_variable(quoted=quoted)

    def _bare_variable(self, *, quoted: bool) -> Part:
        start = self._at + 1
        end = start
        while self._text[end : end + 1] in _NAME and end < len(self._text):
            end += 1
        if end == start and self._text[end : end + 1] in tuple("@*#?$!-"):
            end += 1
        elif self._text[start : start + 1].isdigit():
            end = start + 1
        self._at = end
        return Part("text", "$", quoted) if end == start else Part("variable", self._text[start:end], quoted)

    def _bracketed(self, opening: str, closing: str) -> str:
        """What stands in the brackets behind a $; quotes within hide brackets."""
        start, line, depth, quote = self._at + 2, self._line, 0, ""
        self._at += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            self._line += letter == "\n"
            self._at += 1
            if letter == "\\":
                self._at += 1
            elif quote:
                quote = "" if letter == quote else quote
            elif letter in "'\"":
                quote = letter
            elif letter == opening:
                depth += 1
            elif letter == closing:
                depth -= 1
                if depth == 0:
                    return self._text[start : self._at - 1]
        raise ReadingError("unclosed", self._name, line, sign=f"${opening}")


def _joined(parts: list[Part]) -> list[Part]:
    """Neighbouring texts of one kind as one."""
    found: list[Part] = []
    for (kind, quoted), group in itertools.groupby(parts, key=lambda part: (part.kind, part.quoted)):
        together = list(group)
        found += [Part(kind, "".join(part.text for part in together), quoted)] if kind == "text" else together
    return found
