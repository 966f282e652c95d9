"""Regular expressions that cost no more than their length times that of the text, whoever wrote them.

Python's own go back and try again, which one pattern of thirty characters can make take years; matchers come over the
network. So these are run as RE2 (Alertmanager's) runs them: all that the pattern may still become, side by side.
Understood: literals, `.`, [classes], \\d \\w \\s and their opposites (ASCII), groups, |, and repetitions: * + ? {m,n}.
The whole text has to match; ^ and $ may be written all the same. `(?i)` at the beginning: whatever the case.
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

PATTERN_CHARS_MAX = 500
STATES_MAX = 2000  # a label of 253 characters is then matched in some milliseconds at worst
NESTING_MAX = 20
REMEMBERED_STEPS = 10_000  # of one pattern

Ranges: TypeAlias = "tuple[tuple[str, str], ...]"
_CLASSES: dict[str, Ranges] = {
    "d": (("0", "9"),),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")),
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
_LAST_CHAR = chr(0x10FFFF)


class Chars(NamedTuple):
    """One character out of, or not out of, some ranges."""

    ranges: Ranges
    is_negated: bool = False

    def accepts(self, char: str, *, ignore_case: bool) -> bool:
        forms = (char, char.lower(), char.upper()) if ignore_case else (char,)
        return any(low <= form <= high for low, high in self.ranges for form in forms) != self.is_negated


class Sequence(NamedTuple):
    parts: "tuple[Part, ...]"


class Choice(NamedTuple):
    options: "tuple[Part, ...]"


class Repeat(NamedTuple):
    part: "Part"
    least: int
    most: int | None


Part: TypeAlias = "Chars | Sequence | Choice | Repeat"
_ANY = Chars((), is_negated=True)


class _Parser:
    """Raises ValueError with a sentence."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0

    def whole(self) -> Part:
        part = self._choice()
        if self._at < len(self._text):
            raise ValueError("there is a ) too many")
        return part

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _skip(self, word: str) -> bool:
        is_there = self._text.startswith(word, self._at)
        self._at += len(word) if is_there else 0
        return is_there

    def _choice(self) -> Part:
        options = [self._sequence()]
        while self._skip("|"):
            options.append(self._sequence())
        return Choice(tuple(options)) if len(options) > 1 else options[0]

    def _sequence(self) -> Part:
        parts: list[Part] = []
        if self._depth == 0:
            self._skip("^")
        while self._peek() not in ("", "|", ")"):
            if self._depth == 0 and self._peek() == "$" and self._text[self._at + 1 : self._at + 2] in ("", "|"):
                self._at += 1
            else:
                parts.append(self._repeated())
        return Sequence(tuple(parts))

    def _repeated(self) -> Part:
        part = self._atom()
        if self._peek() not in ("*", "+", "?", "{"):
            return part
        least, most = self._bounds()
        self._skip("?")  # as few as possible: the same texts match
        if self._peek() in ("*", "+", "?", "{"):
            raise ValueError("a repetition cannot be repeated; put it into brackets")
        return Repeat(part, least, most)

    def _bounds(self) -> tuple[int, int | None]:
        char = self._take()
        if char != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        inside, closed, _ = self._text[self._at :].partition("}")
        least, comma, most = inside.partition(",")
        if not closed or not _is_count(least) or not (_is_count(most) or not most):
            raise ValueError("{ begins a repetition such as {2,3}; write \\{ for the character itself")
        self._at += len(inside) + 1
        upper = (int(most) if most else None) if comma else int(least)
        if upper is not None and upper < int(least):
            raise ValueError(f"{{{inside}}} ends before it begins")
        return int(least), upper

    def _atom(self) -> Part:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == "\\":
            return Chars(*self._escape())
        if char in "*+?{":
            raise ValueError(f"there is nothing before {char} to repeat")
        if char in "^$":
            raise ValueError(f"{char} can only stand at the very ends: the whole label is compared anyway")
        return _ANY if char == "." else Chars(((char, char),))

    def _group(self) -> Part:
        if not self._skip("?:") and self._peek() == "?":
            raise ValueError("only (...) and (?:...) are understood of what begins with (")
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise ValueError(f"this is nested more than {NESTING_MAX} levels deep")
        part = self._choice()
        if not self._skip(")"):
            raise ValueError("a ( is never closed")
        self._depth -= 1
        return part

    def _escape(self) -> tuple[Ranges, bool]:
        char = self._take()
        if char.lower() in _CLASSES:
            return _CLASSES[char.lower()], char.isupper()
        if char in _CONTROLS:
            return ((_CONTROLS[char], _CONTROLS[char]),), False
        if not char or char.isalnum():
            raise ValueError(f"\\{char} is not understood" if char else "it ends in a lone \\")
        return ((char, char),), False

    def _class(self) -> Chars:
        is_negated = self._skip("^")
        ranges: list[tuple[str, str]] = []
        while self._peek() != "]" or not ranges:
            if not self._peek():
                raise ValueError("a [ is never closed")
            ranges += self._class_item()
        self._at += 1
        return Chars(tuple(ranges), is_negated)

    def _class_item(self) -> Ranges:
        first = self._class_char()
        is_range = self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", "")
        if not is_range or len(first) != 1 or first[0][0] != first[0][1]:
            return first
        self._at += 1
        last = self._class_char()
        if len(last) != 1 or last[0][0] != last[0][1] or last[0][0] < first[0][0]:
            raise ValueError("a range in [...] ends before it begins")
        return ((first[0][0], last[0][0]),)

    def _class_char(self) -> Ranges:
        char = self._take()
        if char != "\\":
            return ((char, char),)
        ranges, is_negated = self._escape()
        return _complement(ranges) if is_negated else ranges


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(STATES_MAX))


def _complement(ranges: Ranges) -> Ranges:
    """All other characters; the ranges are in order and apart."""
    bounds = ["\0", *[edge for low, high in ranges for edge in (chr(ord(low) - 1), chr(ord(high) + 1))], _LAST_CHAR]
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


class Regex:
    """A pattern that was read. Raises ValueError with a sentence where it cannot be."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_CHARS_MAX:
            raise ValueError(f"it is longer than {PATTERN_CHARS_MAX} characters")
        self._ignore_case = pattern.startswith("(?i)")
        self._chars: list[Chars | None] = []  # what a state waits for; None: nothing, it goes on at once
        self._next: list[tuple[int, ...]] = []
        self._end = self._add(None, ())
        start = self._build(_Parser(pattern.removeprefix("(?i)")).whole(), self._end)
        self._start = self._reached([start])
        self._steps: dict[tuple[tuple[int, ...], str], tuple[int, ...]] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text is one that the pattern describes."""
        states = self._start
        for char in text:
            states = self._step(states, char)
            if not states:
                return False
        return self._end in states

    def _step(self, states: tuple[int, ...], char: str) -> tuple[int, ...]:
        known = self._steps.get((states, char))
        if known is not None:
            return known
        after = [
            self._next[state][0]
            for state in states
            if (chars := self._chars[state]) is not None and chars.accepts(char, ignore_case=self._ignore_case)
        ]
        if len(self._steps) >= REMEMBERED_STEPS:
            self._steps.clear()
        self._steps[states, char] = reached = self._reached(after)
        return reached

    def _reached(self, states: list[int]) -> tuple[int, ...]:
        """These states and all that are reached from them without a character."""
        seen: dict[int, None] = {}
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in seen:
                seen[state] = None
                waiting += self._next[state] if self._chars[state] is None else ()
        return tuple(sorted(seen))

    def _add(self, chars: Chars | None, following: tuple[int, ...]) -> int:
        if len(self._chars) >= STATES_MAX:
            raise ValueError("its repetitions make too much of it; use * or + in place of large numbers")
        self._chars.append(chars)
        self._next.append(following)
        return len(self._chars) - 1

    def _build(self, part: Part, then: int) -> int:
        """The state in which `part` begins, after which `then` follows."""
        if isinstance(part, Chars):
            return self._add(part, (then,))
        if isinstance(part, Sequence):
            for one in reversed(part.parts):
                then = self._build(one, then)
            return then
        if isinstance(part, Choice):
            return self._add(None, tuple([self._build(option, then) for option in part.options]))
        return self._build_repeat(part, then)

    def _build_repeat(self, part: Repeat, then: int) -> int:
        start = then
        if part.most is None:
            start = self._add(None, ())
            self._next[start] = (self._build(part.part, start), then)
        for _ in range((part.most or part.least) - part.least):
            start = self._add(None, (self._build(part.part, start), then))
        for _ in range(part.least):
            start = self._build(part.part, start)
        return start


@lru_cache(maxsize=2000)
def regex(pattern: str) -> Regex:
    """The pattern, read once. Raises ValueError with a sentence."""
    return Regex(pattern)
