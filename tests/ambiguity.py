"""Which regular expressions may take exponential time: those that read the same text in ever more ways.

A backtracking matcher tries every way in which a text can be read before it says no. Where a loop can go round once in
two ways, n rounds are 2^n ways. Found by the positions of the expression (Glushkov's automaton): two ways to get from a
position to the next one on a cycle, or two different positions that one text leads to from a position, and on to the
same again.

An alphabet of some characters stands for all: what is told apart by an expression of ours is among them.
"""

import importlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

sre_parse: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

ALPHABET = [*map(chr, range(128)), "\xa0", "é", "ß", "三", "中", "\u2028", "\uff11"]
EVERYTHING = (1 << len(ALPHABET)) - 1
LONGEST_UNROLLED = 4  # repeats of at most so many times are written out; the others are taken to have no end

Edge = tuple[int, int]


class _Part(NamedTuple):
    """What an expression, or a part of it, begins and ends with: positions, each as often as there are ways to it."""

    first: "Counter[int]"
    last: "Counter[int]"
    empty: int  # the ways to read nothing


_NOTHING = _Part(Counter(), Counter(), 1)


class Automaton:
    """The positions of an expression, and the ways from one to the next."""

    def __init__(self, pattern: "re.Pattern[str] | re.Pattern[bytes]") -> None:
        self._flags = pattern.flags
        self._is_text = isinstance(pattern.pattern, str)
        self.characters: list[int] = []  # of each position, as bits of the alphabet
        self.ways: Counter[Edge] = Counter()
        self._sequence(sre_parse.parse(pattern.pattern, pattern.flags & ~re.DEBUG))

    def doubt(self) -> str | None:
        """Where a loop can go round in two ways; None: nowhere."""
        for members in self._loops():
            for (start, end), ways in self.ways.items():
                if ways > 1 and start in members and end in members:
                    return f"two ways from {self._shown(start)} to {self._shown(end)}"
            if (pair := self._parting(members)) is not None:
                return f"{self._shown(pair[0])} and {self._shown(pair[1])} read the same in one loop"
        return None

    def _shown(self, position: int) -> str:
        shown = "".join(one for bit, one in enumerate(ALPHABET) if self.characters[position] >> bit & 1)
        return repr(shown if len(shown) < 20 else shown[:8] + "..." + shown[-8:])

    # ------------------------------------------------------------ building

    def _sequence(self, items: Iterable[Any]) -> _Part:
        whole = _NOTHING
        for operation, argument in items:
            whole = self._then(whole, self._one(str(operation), argument))
        return whole

    def _one(self, operation: str, argument: Any) -> _Part:
        if operation in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY"):
            return self._position(self._bits(operation, argument))
        if operation == "SUBPATTERN":
            return self._flagged(*argument[1:])
        if operation in ("BRANCH", "GROUPREF_EXISTS"):
            branches = argument[1] if operation == "BRANCH" else argument[1:]
            return self._either([self._sequence(branch or []) for branch in branches])
        if operation in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(*argument)
        if operation in ("ASSERT", "ASSERT_NOT"):
            self._sequence(argument[1])  # it reads on its own, and takes nothing
        else:
            assert operation in ("AT", "GROUPREF"), f"{operation} is yet to be understood"
        return _NOTHING

    def _flagged(self, added: int, taken: int, items: Any) -> _Part:
        before, self._flags = self._flags, (self._flags | added) & ~taken
        try:
            return self._sequence(items)
        finally:
            self._flags = before

    def _position(self, bits: int) -> _Part:
        self.characters.append(bits)
        only = Counter({len(self.characters) - 1: 1})
        return _Part(only, only, 0)

    def _then(self, one: _Part, other: _Part) -> _Part:
        self._join(one.last, other.first)
        return _Part(
            one.first + _times(other.first, one.empty),
            other.last + _times(one.last, other.empty),
            one.empty * other.empty,
        )

    def _either(self, parts: list[_Part]) -> _Part:
        first: Counter[int] = Counter()
        last: Counter[int] = Counter()
        for part in parts:
            first, last = first + part.first, last + part.last
        return _Part(first, last, sum(part.empty for part in parts))

    def _repeat(self, least: int, most: int, items: Any) -> _Part:
        if most <= LONGEST_UNROLLED:
            rest = _NOTHING  # of those that need not be, each follows the one before it
            for _ in range(most - least):
                rest = self._then(self._sequence(items), rest)
                rest = rest._replace(empty=rest.empty + 1)
            for _ in range(least):
                rest = self._then(self._sequence(items), rest)
            return rest
        part = self._sequence(items)
        self._join(part.last, part.first)
        return part if least else part._replace(empty=1)

    def _join(self, ends: "Counter[int]", starts: "Counter[int]") -> None:
        for end, ways in ends.items():
            for start, more in starts.items():
                self.ways[end, start] += ways * more

    # ------------------------------------------------------------ characters

    def _bits(self, operation: str, argument: Any) -> int:
        if operation == "ANY":
            return EVERYTHING if self._flags & re.DOTALL else EVERYTHING & ~(1 << ALPHABET.index("\n"))
        if operation == "IN":
            negated = str(argument[0][0]) == "NEGATE"
            bits = 0
            for part in argument[negated:]:
                bits |= self._bits(str(part[0]), part[1])
            return EVERYTHING & ~bits if negated else bits
        if operation == "NOT_LITERAL":
            return EVERYTHING & ~self._bits("LITERAL", argument)
        return sum(1 << bit for bit, one in enumerate(ALPHABET) if self._is_in(one, operation, argument))

    def _is_in(self, one: str, operation: str, argument: Any) -> bool:
        if operation == "CATEGORY":
            return self._is_of(one, str(argument))
        least, most = argument if operation == "RANGE" else (argument, argument)
        cases = {one, one.lower(), one.upper()} if self._flags & re.IGNORECASE else {one}
        return any(least <= ord(case) <= most for case in cases if len(case) == 1)

    def _is_of(self, one: str, category: str) -> bool:
        kind = category.removeprefix("CATEGORY_").removeprefix("NOT_")
        letter = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[kind]
        is_ascii = not self._is_text or self._flags & re.ASCII
        found = re.fullmatch(letter, one, re.ASCII if is_ascii else 0) is not None
        return found is not category.startswith("CATEGORY_NOT_")

    # ------------------------------------------------------------ looking

    def _loops(self) -> Iterator[set[int]]:
        """Positions that each lead to all the others, and to themselves."""
        after: dict[int, set[int]] = defaultdict(set)
        for start, end in self.ways:
            after[start].add(end)
        reached = {position: _reached(position, after) for position in range(len(self.characters))}
        seen: set[int] = set()
        for position, others in reached.items():
            if position in others and position not in seen:
                members = {other for other in others if position in reached[other]}
                seen |= members
                yield members

    def _parting(self, members: set[int]) -> Edge | None:
        """Two positions of a loop that some text leads to from one position, and more of it to one again."""
        after: dict[int, list[int]] = defaultdict(list)
        for start, end in self.ways:
            if start in members and end in members:
                after[start].append(end)
        pairs: dict[Edge, set[Edge]] = {}
        waiting: list[Edge] = [(position, position) for position in members]
        while waiting:
            pair = waiting.pop()
            if pair not in pairs:
                both = ((one, other) for one in after[pair[0]] for other in after[pair[1]])
                pairs[pair] = {(one, other) for one, other in both if self.characters[one] & self.characters[other]}
                waiting += pairs[pair]
        for position in members:
            parted: list[Edge] = sorted(pair for pair in _reached((position, position), pairs) if pair[0] != pair[1])
            for pair in parted:
                if (position, position) in _reached(pair, pairs):
                    return pair
        return None


def _times(positions: "Counter[int]", ways: int) -> "Counter[int]":
    return Counter({position: count * ways for position, count in positions.items() if ways})


def _reached(start: Any, after: Any) -> set[Any]:
    found: set[Any] = set()
    waiting = [start]
    while waiting:
        for following in after.get(waiting.pop(), ()):
            if following not in found:
                found.add(following)
                waiting.append(following)
    return found


def doubt(pattern: "re.Pattern[str] | re.Pattern[bytes]") -> str | None:
    """Why a pattern may take exponential time; None: it does not."""
    return Automaton(pattern).doubt()
