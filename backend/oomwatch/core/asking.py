"""Asking a condition: what looks at one start of a run knows nothing until the next one has finished a step."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from oomwatch.core.conditions import Condition
from oomwatch.core.fleet import Fleet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import UNKNOWN, Verdict

Question: TypeAlias = Callable[[Fleet, Subject, float], Verdict]


def ask(condition: Condition, fleet: Fleet, subject: Subject, now: float) -> Verdict:
    """What it says of a subject."""
    if _waits_for_a_start(condition, fleet, subject):
        return UNKNOWN
    return condition.judge(fleet, subject, now)


def asking(condition: Condition) -> Question:
    """`ask` of a condition, as it is called most of all: those that look at no start are asked themselves."""
    return partial(ask, condition) if condition.over_when_run == "starts" else condition.judge


def stands(condition: Condition, fleet: Fleet, subject: Subject, now: float) -> bool:
    """Whether it would say what it said last, where all that was heard of the subject since is that time has passed."""
    return not _waits_for_a_start(condition, fleet, subject) and condition.stands(fleet, subject, now)


def _waits_for_a_start(condition: Condition, fleet: Fleet, subject: Subject) -> bool:
    return condition.over_when_run == "starts" and fleet.is_between_starts(subject)
