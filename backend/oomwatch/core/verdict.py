"""What a condition says of a subject."""

from typing import Literal, NamedTuple

from oomwatch import wire


class Verdict(NamedTuple):
    """active: it is so; inactive: it is not; unknown: there is no telling, which is neither.

    The numbers are those of an active one. An inactive one has the value and its limit where they are at hand: they say
    how near it is, and nothing follows from them.
    """

    state: Literal["active", "inactive", "unknown"]
    value: float | None = None
    limit: float | None = None
    unit: str | None = None
    facts: dict[str, wire.Fact] = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    steady: bool | None = None  # it is so, but has not got worse for long: no danger. None: too little is known


UNKNOWN = Verdict("unknown")
INACTIVE = Verdict("inactive")


def inactive(value: float, limit: float | None, unit: str) -> Verdict:
    """It is not so, and this is what was looked at."""
    return Verdict("inactive", value, limit, unit)
