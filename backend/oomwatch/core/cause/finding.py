"""What a hypothesis says of the facts: how likely it is, and on what evidence."""

from collections.abc import Callable
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.facts import Facts
from oomwatch.core.subject import Topic


class Finding(NamedTuple):
    """A score from 0 to 1, before those of all hypotheses are weighed against each other."""

    score: float
    evidence: tuple[wire.Evidence, ...] = ()
    phase: str | None = None


NONE = Finding(0.0)
Judge = Callable[[Facts], Finding]


def nothing(facts: Facts) -> float:  # noqa: ARG001 - one of many
    """Nothing else leads to it."""
    return 0.0


class Hypothesis(NamedTuple):
    """One cause, what alerts it may stand behind, and how it is judged.

    `told_by` are the kinds of rule that measure this cause and nothing else; `unless` is how likely, from 0 to 1, what
    they measure only follows from another.
    """

    cause: str  # one of wire.CAUSES
    topics: tuple[Topic, ...]
    judge: Judge
    told_by: tuple[str, ...] = ()
    unless: Callable[[Facts], float] = nothing


def evidence(key: str, **facts: wire.Fact | None) -> wire.Evidence:
    """An observation; figures that are not known are left out. Each key has its sentence in the catalogue."""
    return wire.Evidence(key=key, facts={name: value for name, value in facts.items() if value is not None})


def share(part: float, whole: float) -> float:
    """From 0 to 1."""
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
