"""Alerts that end though nobody sees them recover.

Their run is over or has started again, or nobody watches their subject any more.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.lifecycle import Episode, Key
from oomwatch.core.subject import Subject

Ending: TypeAlias = tuple[Key, wire.TransitionReason]
UNWATCHED_SECONDS = 3600.0  # after an agent's goodbye its alerts stay to be seen for so long


def endings(fleet: Fleet, open_keys: Sequence[Key], now: float) -> list[Ending]:
    """The open episodes that end now, and why: those of runs first."""
    of_runs = [key for key in open_keys if key.subject.scope == "run"]
    others = [key for key in open_keys if key.subject.scope != "run"]
    ended: list[Ending] = [(key, "run ended") for key in of_runs if fleet.run_is_over(key.subject.name, now)]
    return ended + [(key, why) for key in others if (why := _why_unwatched(fleet, key.subject, now))]


def overtaken(fleet: Fleet, episodes: Iterable[Episode]) -> list[Ending]:
    """Those that were about a start of a run which is over: another one goes on, or the program has left its card."""
    return [(Key(one.rule.key, one.subject), why) for one in episodes if (why := _why_overtaken(fleet, one))]


def _why_overtaken(fleet: Fleet, episode: Episode) -> wire.TransitionReason | None:
    lives, when = fleet.lives(episode.labels), episode.rule.when
    news = when[episode.condition].over_when_run if episode.condition < len(when) else None
    if lives is None or news is None:
        return None
    if news == "works":
        return "run restarted" if lives.now.works > episode.begun.works else None
    if lives.now.starts > episode.begun.starts:
        return "run restarted"
    return "run ended" if fleet.is_between_starts(episode.subject) and not lives.is_starting else None


def _why_unwatched(fleet: Fleet, subject: Subject, now: float) -> wire.TransitionReason | None:
    node = fleet.nodes.get(subject.name)
    if node is None:
        return None
    if node.stopped and now - node.heard_at > UNWATCHED_SECONDS:
        return "no longer watched"
    # A lost GPU vanishes from the list too: that is no end of it.
    listed = subject.scope == "node" or subject.gpu in node.gpus or subject.gpu in node.lost
    return None if listed else "no longer listed"
