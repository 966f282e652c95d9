"""What stands behind an alert that fires: which kind of trouble its condition is about, then the causes."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.core.cause import rank
from oomwatch.core.conditions import Condition
from oomwatch.core.evidence import gather
from oomwatch.core.fleet import Fleet
from oomwatch.core.notable import TOPICS
from oomwatch.core.subject import Subject, Topic
from oomwatch.core.verdict import Verdict

Diagnose: TypeAlias = Callable[[Fleet, Subject, Condition, Verdict, float], tuple[wire.Cause, ...]]

_TOPIC_OF_EVENT = {str(body.__struct_config__.tag): topic for body, topic in TOPICS.items()}
CLEARER_BY = 0.1  # of the score


class Watched(NamedTuple):
    name: str
    topic: Topic | None  # None: it has no cause in a memory, as an agent that is silent


def watched_by(condition: Condition, verdict: Verdict) -> Watched:
    """What made a condition true (the event that it saw, its metric, else its kind), and what that is about."""
    event = verdict.facts.get("event")
    if event is not None:
        return Watched(str(event), _TOPIC_OF_EVENT.get(str(event)))
    names = (getattr(condition, "metric", None), getattr(condition, "of", None))
    tag = str(condition.__struct_config__.tag)
    return Watched(next((one for one in names if isinstance(one, str)), tag), condition.topic)


def diagnose(
    fleet: Fleet, subject: Subject, condition: Condition, verdict: Verdict, now: float
) -> tuple[wire.Cause, ...]:
    """The causes of what a condition has just judged, most likely first; empty where none can be told."""
    watched = watched_by(condition, verdict)
    if watched.topic is None:
        return ()
    return rank(gather(fleet, subject, watched.topic, watched.name, verdict, now))


def is_clearer(after: Sequence[wire.Cause], before: Sequence[wire.Cause]) -> bool:
    """Whether a new ranking names another first cause, and clearly: well above the one that was the first."""
    if not after or not before or after[0].cause == before[0].cause:
        return bool(after) and not before
    first_before = next((one.score for one in after if one.cause == before[0].cause), 0.0)
    return after[0].score >= first_before + CLEARER_BY
