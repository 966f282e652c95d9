"""Asking a condition: what looks at one start of a run knows nothing until the next one has finished a step."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from oomwatch.core.conditions import Condition
from oomwatch.core.fleet import Fleet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import UNKNOWN, Verdict

Question: TypeAlias = Callable[[Fleet, Subject, float], bool]


def ask(condition: Condition, fleet: Fleet, subject: Subject, now: float) -> Verdict:
    """What it says of a subject."""
    if _waits_for_a_start(condition, fleet, subject):
        return UNKNOWN
    return condition.judge(fleet, subject, now)


def asking(condition: Condition) -> Question:
    """Whether it is so, as it is called most of all: those that look at no start are asked themselves."""
    return partial(_is_so, condition) if condition.over_when_run == "starts" else condition.is_so


def any_of(questions: Sequence[Question]) -> Question:
    if len(questions) == 1:
        return questions[0]
    return lambda fleet, subject, now: any(is_so(fleet, subject, now) for is_so in questions)


def _is_so(condition: Condition, fleet: Fleet, subject: Subject, now: float) -> bool:
    return not _waits_for_a_start(condition, fleet, subject) and condition.is_so(fleet, subject, now)


def stands(condition: Condition, fleet: Fleet, subject: Subject, now: float) -> bool:
    """Whether it would say what it said last, where all that was heard of the subject since is that time has passed."""
    return not _waits_for_a_start(condition, fleet, subject) and condition.stands(fleet, subject, now)


def _waits_for_a_start(condition: Condition, fleet: Fleet, subject: Subject) -> bool:
    return condition.over_when_run == "starts" and fleet.is_between_starts(subject)
