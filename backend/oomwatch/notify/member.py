"""One alert in a group: what is known of it, what of that a channel was told, and so what is news. Pure.

Muting withholds the beginning and never the end: an alert that was told is told to be over even while it is muted; one
that was never told, because it was muted, is told to nobody when it ends muted, and at once when its mute ends.
"""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.letters import TransitionKey, key_of
from oomwatch.story import added_up

# What is kept of an alert that goes back and forth for weeks and of which nobody is told.
CHANGES_KEPT = 64
# The changes that a message can be edited for.
EDITED_FOR = ("severity", "outcome", "acts", "muted", "acknowledged")

News: TypeAlias = Literal["firing", "resolved", "escalation", "update"]


class Ways(NamedTuple):
    """How a channel speaks of a group."""

    send_resolved: bool = True
    edits: bool = False
    after_seconds: float | None = None  # it is told only of what fires for so long and nobody cares for


class Member:
    __slots__ = ("_loud", "_seen", "fired_at", "latest", "since", "told", "untold")

    def __init__(self) -> None:
        self.latest: wire.Transition | None = None
        self.told: wire.Transition | None = None  # what the channel knows
        self.untold: dict[TransitionKey, wire.Transition] = {}  # since then, each as the alert was after it
        self.since = 0.0  # when there began to be news
        self.fired_at: float | None = None
        self._loud: wire.Transition | None = None  # the last that people would have been told of, had it lasted
        self._seen: dict[TransitionKey, None] = {}

    def take(self, new: wire.Transition, now: float, ways: Ways, age_seconds: float) -> None:
        """The next of its transitions, which came about so long before now. What is known is passed over."""
        if key_of(new) in self._seen:
            return
        before = self.news(ways)
        after = self._fold(new, now - age_seconds)
        self.untold[key_of(new)] = msgspec.structs.replace(after, change=new.change)
        if len(self.untold) > CHANGES_KEPT:
            del self.untold[next(iter(self.untold))]
        if before is None:
            self.since = now

    def recall(self, old: wire.Transition, at: float) -> None:
        """One that the channel was told of in an earlier life."""
        self.told = self._fold(old, at)
        self.untold.clear()

    def _fold(self, new: wire.Transition, at: float) -> wire.Transition:
        self._seen[key_of(new)] = None
        if len(self._seen) > CHANGES_KEPT:
            del self._seen[next(iter(self._seen))]
        self.latest = latest = added_up(self.latest, new)
        if latest.state == "firing":
            if self.fired_at is None:
                self.fired_at = at
            if not _is_hidden(latest):
                self._loud = latest
        return latest

    def news(self, ways: Ways) -> News | None:
        """What there is to say. An escalation has its time (`ripe_at`), the rest is so now."""
        latest = self.latest
        if latest is None:
            return None
        found = self._over(latest, ways) if latest.state == "resolved" else self._firing(latest, ways)
        return found or ("update" if ways.edits and self._is_edited(latest) else None)

    def _firing(self, latest: wire.Transition, ways: Ways) -> News | None:
        if _is_hidden(latest):
            return None
        if self.told is None:
            if ways.after_seconds is None:
                return "firing"
            return "escalation" if _is_pressing(latest) else None
        raised = any(one.change == "severity" and one.lowered_from is None for one in self.untold.values())
        return "firing" if raised and latest.lowered_from is None else None

    def _over(self, latest: wire.Transition, ways: Ways) -> News | None:
        if self.told is not None:
            return "resolved" if self.told.state == "firing" and ways.send_resolved else None
        if _is_hidden(latest) or self._loud is None or ways.after_seconds is not None:
            return None
        return "resolved" if ways.send_resolved else "firing"

    def _is_edited(self, latest: wire.Transition) -> bool:
        """That it is muted is said, and then no more until it is not."""
        if self.told is None or (latest.muted and self.told.muted):
            return False
        return any(one.change in EDITED_FOR for one in self.untold.values())

    def ripe_at(self, ways: Ways, wait_seconds: float) -> float:
        """When its news may go, having waited for company."""
        if self.news(ways) == "escalation" and self.fired_at is not None:
            return max(self.since, self.fired_at + (ways.after_seconds or 0.0)) + wait_seconds
        return self.since + wait_seconds

    def is_repeated(self) -> bool:
        """Whether it is to be told again while nothing changes."""
        told = self.told is not None and self.told.state == "firing"
        return told and self.latest is not None and self.latest.state == "firing" and _is_pressing(self.latest)

    def is_nobodys(self, ways: Ways) -> bool:
        """It is over, and nobody was told or will be."""
        return self.told is None and self.latest is not None and self.latest.state == "resolved" and not self.news(ways)

    def is_settled(self, ways: Ways) -> bool:
        """It was told, is over, and there is nothing left to say of it."""
        told = self.told is not None and self.latest is not None and self.latest.state == "resolved"
        return told and not self.news(ways)

    def told_now(self) -> tuple[TransitionKey, ...]:
        """It has been said: gives the transitions of which it was."""
        covers = tuple(self.untold)
        self.told, self._loud = self.latest, None
        self.untold.clear()
        return covers

    def as_told(self, state: Literal["firing", "resolved"]) -> wire.Transition | None:
        """What a message of this state says of it: it may have fired, and be over for who hears of no ends."""
        return self._loud if state == "firing" and self.latest and self.latest.state == "resolved" else self.latest


def _is_hidden(latest: wire.Transition) -> bool:
    return bool(latest.muted) or latest.quiet


def _is_pressing(latest: wire.Transition) -> bool:
    """Nobody takes care of it, and it is as grave as its rule says."""
    return not _is_hidden(latest) and latest.acknowledged is None and latest.lowered_from is None
