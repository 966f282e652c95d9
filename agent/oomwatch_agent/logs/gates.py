"""Finding the few lines of a log that could say something, without looking at the others.

Every pattern names a literal that its lines contain. One regular expression looks for all of them at once, in bytes and
over many lines at a time. It is anchored at the rarest letter of each literal, because what costs time is how often the
search has to stop: "memory" is looked for at its "y" and not at its "m".
"""

import re
from collections.abc import Iterable

# Bytes in the order of how often they stand in trainers' logs, the most frequent first (counted over recorded logs of
# verl and printed samples). What is not listed is rarer than all of these.
_FREQUENT = b" enrsitoa1025:3mhd[upg\x1b.=T6()k/c,l4Rf8|9vw$%7b]-*xP<yL_'FWAN{}qSOI+;Z#EUBG"
_RANK = {letter: rank for rank, letter in enumerate(_FREQUENT)}


def any_of(literals: Iterable[str], expressions: Iterable[bytes] = ()) -> re.Pattern[bytes]:
    """Matches inside the first place where any of the literals stands, or an expression fits."""
    given = dict.fromkeys(literal.encode() for literal in literals)
    # A literal that contains another one is found with it.
    needed = [one for one in given if not any(other != one and other in one for other in given)]
    return re.compile(b"|".join([*sorted(_anchored(literal) for literal in needed), *expressions]))


def _anchored(literal: bytes) -> bytes:
    # Of letters beyond ASCII the last byte: the first ones are those of progress bars, too.
    at = max(range(len(literal)), key=lambda index: (_RANK.get(literal[index], len(_RANK)), index))
    before = b"(?<=" + re.escape(literal[: at + 1]) + b")" if at else b""
    return re.escape(literal[at : at + 1]) + before + re.escape(literal[at + 1 :])
