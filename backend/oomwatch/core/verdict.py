"""What a condition says of a subject."""

from typing import Literal, NamedTuple

from oomwatch import wire


class Verdict(NamedTuple):
    """active: it is so; inactive: it is not; unknown: there is no telling, which is neither.

    The numbers are those of an active one: nobody asks how far from full a GPU was that is not.
    """

    state: Literal["active", "inactive", "unknown"]
    value: float | None = None
    limit: float | None = None
    unit: str | None = None
    facts: dict[str, wire.Fact] = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    steady: bool | None = None  # it is so, but has not got worse for long: no danger. None: too little is known


UNKNOWN = Verdict("unknown")
INACTIVE = Verdict("inactive")
