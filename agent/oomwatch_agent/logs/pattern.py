"""The shape that every parser of this package has: a table of named patterns, each with a line that proves it."""

import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from oomwatch import wire

Bodies: TypeAlias = tuple[wire.EventBody, ...]


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of record.

    `gate` is a literal that every such line contains: it is looked for in the raw line before anything else is done
    with it, so it must survive colour codes (choose a piece without spaces at its edges). `regex` is matched at the
    start of the clean text; `read` turns the match into events, or into none where the numbers make no sense.
    `example` is a whole raw line; a test runs it through the reader.
    """

    name: str
    gate: str
    regex: re.Pattern[str]
    read: Callable[[re.Match[str]], Bodies]
    example: str
    expect: tuple[str, ...]  # the kinds of the events that `example` gives
    seen_in: str = "composed"  # where the example was found; "composed": from the program's own code or several lines


def first_match(patterns: tuple[Pattern, ...], text: str) -> Bodies:
    """The events of the first pattern that recognises `text`."""
    for pattern in patterns:
        match = pattern.regex.match(text)
        if match is not None and (bodies := pattern.read(match)):
            return bodies
    return ()
