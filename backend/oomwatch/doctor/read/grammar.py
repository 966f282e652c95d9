r"""One override, as Hydra reads it: key=value, +key=value, ++key=value, ~key, with lists, mappings, quotes and casts.

The grammar is Hydra's (OverrideLexer.g4 and OverrideParser.g4 of 1.3); tests hold it against Hydra itself. Differences:
functions that only sweep and sort are recognised and not carried out.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from oomwatch.doctor.read.reading import Value

Sign = Literal["", "+", "++", "~"]
LONGEST = 20_000  # characters of one override
_DEEPEST = 30

_INT = r"(?:0|[1-9](?:_?\d)*)"
_POINT = rf"(?:{_INT}?\.\d(?:_?\d)*|{_INT}\.)"
_EXPONENT = rf"(?:(?:{_POINT}|{_INT})[eE][+-]?\d(?:_?\d)*)"
# In the order in which Hydra's lexer has them: the longest match wins, and of equally long ones the first.
_TOKENS = tuple(
    (name, re.compile(pattern, re.ASCII | re.DOTALL))
    for name, pattern in (
        ("(", r"[ \t]*\([ \t]*"),
        (",", r"[ \t]*,[ \t]*"),
        (")", r"[ \t]*\)"),
        ("[", r"\[[ \t]*"),
        ("]", r"[ \t]*\]"),
        ("{", r"\{[ \t]*"),
        ("}", r"[ \t]*\}"),
        (":", r"[ \t]*:[ \t]*"),
        ("=", r"[ \t]*=[ \t]*"),
        ("float", rf"[+-]?(?:{_EXPONENT}|{_POINT}|[Ii][Nn][Ff]|[Nn][Aa][Nn])"),
        ("int", rf"[+-]?{_INT}"),
        ("bool", r"[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"),
        ("null", r"[Nn][Uu][Ll][Ll]"),
        ("other", r"[/\-\\+.$%*@?|]"),
        ("id", r"[a-zA-Z_][a-zA-Z0-9_-]*"),
        ("escape", r"(?:\\[\\()\[\]{}:=, \t])+"),
        ("blank", r"[ \t]+"),
        ("quoted", r'"(?:(?:\\\\)*|.*?[^\\](?:\\\\)*)"' + r"|'(?:(?:\\\\)*|.*?[^\\](?:\\\\)*)'"),
        ("reference", r"\$\{[^}]+\}"),
    )
)
_OF_PRIMITIVES = frozenset(
    {"quoted", "id", "null", "int", "float", "bool", "reference", "other", ":", "escape", "blank"}
)
_NAME = r"[a-zA-Z_$][\w$-]*"
_KEY = re.compile(rf"(?:{_NAME}|(?:{_NAME}|{_INT})(?:\.(?:{_NAME}|{_INT}))+)", re.ASCII)
_GROUP = re.compile(r"[a-zA-Z_][\w-]*(?:/[a-zA-Z_][\w-]*)+", re.ASCII)
_BEFORE_QUOTE = {quote: re.compile(rf"(\\)+{quote}") for quote in "'\""}
_SWEEPS = frozenset({"choice", "range", "interval", "glob", "sort", "shuffle", "tag"})


class Override(NamedTuple):
    sign: Sign
    key: str  # dotted, or a group's name
    value: Value = None
    package: str | None = None  # behind an @
    told: bool = True  # whether there was a value ("~key" has none)
    sweeps: bool = False  # "a,b" and its like: several runs

    @property
    def names_a_group(self) -> bool:
        return self.package is not None or "/" in self.key


class NoOverrideError(ValueError):
    """The text is none that Hydra could read."""


def parse_override(text: str) -> Override:
    """An override out of one word of a command. Raises NoOverrideError."""
    if len(text) > LONGEST:
        raise NoOverrideError("it is too long")
    sign, rest = _signed(text)
    left, equals, right = rest.partition("=")
    if not equals and sign != "~":
        raise NoOverrideError("there is no =")
    key, at, package = left.partition("@")
    if not (_KEY.fullmatch(key) or _GROUP.fullmatch(key)) or (at and package and not _KEY.fullmatch(package)):
        raise NoOverrideError(f'"{left}" is no key')
    value, sweeps = _value_of(right.lstrip(" \t")) if equals else (None, False)
    return Override(sign, key, value, package if at else None, bool(equals), sweeps)


def parse_value(text: str) -> Value:
    """What stands behind the =. Raises NoOverrideError."""
    value, sweeps = _value_of(text.strip(" \t"))
    if sweeps:
        raise NoOverrideError("there is more than one value")
    return value


def _signed(text: str) -> tuple[Sign, str]:
    signs: tuple[Sign, ...] = ("++", "+", "~")
    sign: Sign = next((sign for sign in signs if text.startswith(sign)), "")
    return sign, text[len(sign) :]


def _value_of(text: str) -> tuple[Value, bool]:
    if not text:
        return "", False
    parser = _Parser(_tokens(text))
    value = parser.element()
    while parser.peek == ",":
        parser.take()
        parser.element()
        parser.sweeps = True
    if parser.peek is not None:
        raise NoOverrideError(f'"{parser.take().text}" is too much')
    return value, parser.sweeps


class _Token(NamedTuple):
    name: str
    text: str


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        matches = ((name, match[0]) for name, pattern in _TOKENS if (match := pattern.match(text, at)))
        best = max(matches, key=lambda one: len(one[1]), default=None)
        if best is None or not best[1]:
            raise NoOverrideError(f"{text[at]!r} cannot stand here")
        found.append(_Token(*best))
        at += len(best[1])
    return found


class _Parser:
    """By recursive descent, as deep as the brackets are nested."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.sweeps = False

    @property
    def peek(self) -> str | None:
        return self._tokens[self._at].name if self._at < len(self._tokens) else None

    def take(self, name: str | None = None) -> _Token:
        if self.peek is None or name not in (None, self.peek):
            raise NoOverrideError(f'there is no "{name}"' if name else "it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def element(self) -> Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NoOverrideError("it is nested too deeply")
        try:
            return self._element()
        finally:
            self._depth -= 1

    def _element(self) -> Value:
        if self.peek == "[":
            return self._list()
        if self.peek == "{":
            return self._mapping()
        after = self._tokens[self._at + 1].name if self._at + 1 < len(self._tokens) else None
        return self._function() if self.peek == "id" and after == "(" else self._primitive(_OF_PRIMITIVES)

    def _list(self) -> Value:
        self.take("[")
        found: list[Value] = []
        while self.peek != "]":
            if found:
                self.take(",")
            found.append(self.element())
        self.take("]")
        return found

    def _mapping(self) -> Value:
        self.take("{")
        found: dict[str, Value] = {}
        while self.peek != "}":
            if found:
                self.take(",")
            key = self._primitive(_OF_PRIMITIVES - {"quoted", "reference", ":"})
            self.take(":")
            found[str(key)] = self.element()
        self.take("}")
        return found

    def _function(self) -> Value:
        name = self.take("id").text
        self.take("(")
        arguments: list[Value] = []
        while self.peek != ")":
            if arguments:
                self.take(",")
            if self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].name == "=":
                self.take("id")
                self.take("=")
            arguments.append(self.element())
        self.take(")")
        if name in _SWEEPS:
            self.sweeps = True
            return None
        return _cast(name, arguments)

    def _primitive(self, allowed: frozenset[str]) -> Value:
        tokens = []
        while self.peek in allowed:
            tokens.append(self.take())
        while tokens and tokens[0].name == "blank":
            tokens.pop(0)
        while tokens and tokens[-1].name == "blank":
            tokens.pop()
        if not tokens or (len(tokens) > 1 and any(token.name == "quoted" for token in tokens)):
            raise NoOverrideError("a value is missing, or quotes stand within one")
        return _scalar(tokens[0]) if len(tokens) == 1 else "".join(map(_piece, tokens))


def _piece(token: _Token) -> str:
    return token.text[1::2] if token.name == "escape" else token.text


def _scalar(token: _Token) -> Value:
    if token.name == "quoted":
        return _unquoted(token.text)
    if token.name == "int":
        return int(token.text)
    if token.name == "float":
        return float(token.text)
    if token.name == "bool":
        return token.text.lower() == "true"
    return None if token.name == "null" else _piece(token)


def _unquoted(text: str) -> str:
    r"""Without its quotes; of backslashes before a quote every second one goes."""
    inner = _BEFORE_QUOTE[text[0]].sub(lambda match: match[0][1::2], text[1:])
    return inner if text[-2] == "\\" else inner[:-1]  # backslashes before the last quote have taken it along


def _cast(name: str, arguments: list[Value]) -> Value:
    casts: dict[str, Callable[[Value], Value]] = {"int": _to_int, "float": _to_float, "str": _to_str, "bool": _to_bool}
    if name not in casts or len(arguments) != 1:
        raise NoOverrideError(f'there is no function "{name}" with {len(arguments)} values')
    try:
        return _cast_all(casts[name], arguments[0])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise NoOverrideError(f"{name}() cannot take this") from error


def _cast_all(cast: Callable[[Value], Value], value: Value) -> Value:
    if isinstance(value, list):
        return [_cast_all(cast, one) for one in value]
    if isinstance(value, dict):
        return {key: _cast_all(cast, one) for key, one in value.items()}
    if value is None:
        raise NoOverrideError("null cannot be cast")
    return cast(value)


def _to_int(value: Value) -> Value:
    return int(value) if isinstance(value, str | int | float) else None


def _to_float(value: Value) -> Value:
    return float(value) if isinstance(value, str | int | float) else None


def _to_str(value: Value) -> Value:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_bool(value: Value) -> Value:
    if isinstance(value, str):
        return {"true": True, "false": False}[value.lower()]
    return bool(value)
