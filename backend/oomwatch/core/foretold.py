"""What will be full, and when, as the conditions that look ahead worked it out last.

For readers beside the engine: nothing is worked out for them, so that reading changes no judgement.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from oomwatch.core.fleet import Fleet
from oomwatch.core.hosthistory import Place
from oomwatch.core.subject import Subject

What: TypeAlias = Literal["device"] | Place


class Foretold(NamedTuple):
    """`steps` is None where no steps are told, `seconds` where it is not known how long one takes."""

    what: What
    seconds: float | None
    steps: float | None


@runtime_checkable
class Foretells(Protocol):
    """A condition that looks ahead. It tells of everything that it believes, however far off."""

    def foretold(self, fleet: Fleet, subject: Subject, now: float) -> Iterator[Foretold]: ...
