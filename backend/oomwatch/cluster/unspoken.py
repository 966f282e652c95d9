"""PURE: what this replica found of subjects that another speaks for, until that one's word comes or it is our turn."""

from collections.abc import Callable

from oomwatch import wire
from oomwatch.core.rule import key_of
from oomwatch.core.subject import subject_of

UNSPOKEN_MAX = 20_000  # alerts: twice what a channel takes
CHANGES_MAX = 16  # of one alert
APART_SECONDS = 2.0  # so far apart two replicas, whose clocks agree as they should, may find the same
OVER_SECONDS = 60.0  # long enough for the next speaker to come: another is chosen after six


class Unspoken:
    """By rule and subject, in the order in which they began."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], list[wire.Transition]] = {}
        self.dropped_total = 0

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def ids(self) -> set[str]:
        """Of the alerts."""
        return {one.id for changes in self._kept.values() for one in changes}

    def put(self, found: wire.Transition) -> None:
        key = _key(found)
        changes = self._kept.setdefault(key, [])
        changes.append(found)
        del changes[:-CHANGES_MAX]
        self._tidy(key)

    def hear(self, word: wire.Transition) -> None:
        """The speaker has said this: what we found says nothing more, but for what came later."""
        key = _key(word)
        changes = self._kept.get(key)
        if changes is None:
            return
        changes[:] = [one for one in changes if not _is_said_by(word, one)]
        self._tidy(key)

    def has_any(self, is_ours: Callable[[wire.Transition], bool], before: float) -> bool:
        """Whether something is kept since before that moment (Unix seconds) which is ours to say."""
        return any(one.at <= before and is_ours(one) for changes in self._kept.values() for one in changes)

    def take(self, is_ours: Callable[[wire.Transition], bool]) -> list[wire.Transition]:
        """What is ours to say, which is kept no longer."""
        ours = [one for changes in self._kept.values() for one in changes if is_ours(one)]
        for key in {_key(one): None for one in ours}:
            self._kept[key] = [one for one in self._kept[key] if not is_ours(one)]
            self._tidy(key)
        return sorted(ours, key=lambda one: one.at)

    def expire(self, now: float) -> None:
        """What has come and gone, and nobody spoke of: whoever is to has seen it otherwise."""
        over = [key for key, changes in self._kept.items() if _is_over(changes[-1], now)]
        for key in over:
            del self._kept[key]

    def _tidy(self, key: tuple[str, ...]) -> None:
        if not self._kept[key]:
            del self._kept[key]
        while len(self._kept) > UNSPOKEN_MAX:
            self.dropped_total += len(self._kept.pop(next(iter(self._kept))))


def _key(one: wire.Transition) -> tuple[str, ...]:
    return (key_of(one), *subject_of(one.labels))


def _is_said_by(word: wire.Transition, found: wire.Transition) -> bool:
    """What came later than the word, an alert that fires again, is another matter."""
    if found.id != word.id and found.at > word.at + APART_SECONDS:
        return False
    ends_it = word.state == "resolved" and word.change == "state"
    return ends_it or (found.state, found.change) == (word.state, word.change)


def _is_over(last: wire.Transition, now: float) -> bool:
    return last.state == "resolved" and now - last.at > OVER_SECONDS
