"""The alerts as people were last told of them, and which of them have changed since."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

import msgspec

from oomwatch import wire
from oomwatch.core.countdown import counted_down
from oomwatch.core.lifecycle import Episode
from oomwatch.story import alert_view, with_lasting, with_transition

RETELL_SECONDS = 5.0  # a number that moves is told again so often
NOTICEABLE_RATIO = 0.01  # ... if it has moved by so much of itself
# A time that is left goes down by itself; of a thousand cards that is much to tell to every browser: a tenth of it is.
NOTICEABLE_RATIO_OF_TIME_LEFT = 0.1
ENDED_KEPT = 200  # alerts that ended lately, in every snapshot; the rest is in the history

Words = Callable[[wire.Transition], wire.Transition]


class Board:
    """Fed with transitions as they are told, and with the engine's episodes once a second."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._open: dict[str, wire.Alert] = {}
        self._told_at: dict[str, float] = {}
        self._ended: OrderedDict[str, wire.Alert] = OrderedDict()

    def all(self) -> tuple[wire.Alert, ...]:
        """Open alerts, oldest first, and those that ended lately."""
        return (*self._open.values(), *self._ended.values())

    def ended(self) -> Iterator[wire.Alert]:
        return iter(self._ended.values())

    def open(self) -> Iterator[wire.Alert]:
        return iter(self._open.values())

    def find(self, alert_id: str) -> wire.Alert | None:
        """An alert that is open, or ended lately."""
        return self._open.get(alert_id) or self._ended.get(alert_id)

    def remember(self, alerts: Iterable[wire.Alert], now: float) -> None:
        """Alerts of an earlier life of the server, open and ended ones, oldest first."""
        for alert in alerts:
            self._keep(alert, now)

    def take(self, transition: wire.Transition, now: float) -> wire.Alert | None:
        """A transition, in words, that is being told. None: it adds to an alert that ended too long ago to be here."""
        before = self.find(transition.id)
        if before is None and transition.change != "state":
            return None
        alert = with_transition(before, transition)
        self._keep(alert, now)
        return alert

    def _keep(self, alert: wire.Alert, now: float) -> None:
        if alert.state == "resolved":
            self._end(alert)
        else:
            self._put(alert, now)

    def refresh(
        self,
        episodes: Collection[Episode],
        now: float,
        *,
        except_for: AbstractSet[str],
        at_most: int | None = None,
    ) -> list[wire.Alert]:
        """What changed without a transition: pending alerts that came or went, numbers, staleness.

        `except_for`: alerts with a transition on its way, which comes first. `at_most`: so many are put into words, the
        new ones and then those that were told longest ago; the others the next time.
        """
        changed = [one for one in episodes if one.id not in except_for and self._has_changed(one, now)]
        if at_most is not None and len(changed) > at_most:
            changed = sorted(changed, key=self._told_before)[:at_most]
        told = [self._tell(one, now) for one in changed]
        here = {episode.id for episode in episodes} | except_for
        return told + [self._withdraw(alert, now) for key, alert in list(self._open.items()) if key not in here]

    def _told_before(self, episode: Episode) -> float:
        return self._told_at.get(episode.id, float("-inf"))

    def _has_changed(self, episode: Episode, now: float) -> bool:
        told = self._open.get(episode.id)
        if told is None or told.stale != episode.is_stale:
            return True
        return now - self._told_at[episode.id] >= RETELL_SECONDS and _has_moved(told, episode, now)

    def _tell(self, episode: Episode, now: float) -> wire.Alert:
        alert = self.view(episode, now)
        self._put(alert, now)
        return alert

    def view(self, episode: Episode, now: float) -> wire.Alert:
        """An open alert as it is now."""
        state: wire.AlertState = "pending" if episode.fired_at is None else "firing"
        said = self._words(counted_down(episode.transition(state, now), now - episode.verdict_at))
        alert = alert_view(said, fired_at=episode.fired_at, stale=episode.is_stale)
        return with_lasting(alert, self._open.get(episode.id))

    def clock_jumped(self, seconds: float) -> None:
        """The server's clock was set by so much: when to tell again moves along."""
        self._told_at = {alert: at + seconds for alert, at in self._told_at.items()}

    def _withdraw(self, alert: wire.Alert, now: float) -> wire.Alert:
        """A pending alert that never fired: nobody is notified, and the page takes it away."""
        del self._open[alert.id], self._told_at[alert.id]
        return msgspec.structs.replace(alert, state="resolved", ended_at=now, reason="recovered", stale=False)

    def _put(self, alert: wire.Alert, now: float) -> None:
        self._open[alert.id] = alert
        self._told_at[alert.id] = now

    def _end(self, alert: wire.Alert) -> None:
        self._open.pop(alert.id, None)
        self._told_at.pop(alert.id, None)
        self._ended[alert.id] = alert
        while len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)


def _has_moved(told: wire.Alert, episode: Episode, now: float) -> bool:
    """A forecast comes nearer from one judgement to the next."""
    value = counted_down(episode.transition("firing", now), now - episode.verdict_at).value
    is_time_left = episode.verdict.unit == "seconds" and "eta_seconds" in episode.verdict.facts
    return _differs(told.value, value, NOTICEABLE_RATIO_OF_TIME_LEFT if is_time_left else NOTICEABLE_RATIO)


def _differs(told: float | None, value: float | None, ratio: float) -> bool:
    if told is None or value is None:
        return told is not value
    return abs(value - told) > ratio * max(abs(told), abs(value))
