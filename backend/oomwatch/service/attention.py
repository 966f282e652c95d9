"""Whether people are sent word of what fires, and who takes care of it. What changes in that is told like all else."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.core.mute.matcher import matches
from oomwatch.core.mute.stages import Windows
from oomwatch.service.muting import Muting, Open
from oomwatch.service.seams import Audience
from oomwatch.story import transition_of


class NotFiringError(ValueError):
    """An alert that does not fire cannot be taken care of. The text says which."""


class Outside(NamedTuple):
    """`view`: an alert that fires as people see it, by id. `announce`: has transitions stored, then told."""

    view: Callable[[str], wire.Alert | None]
    announce: Callable[[Sequence[wire.Transition]], None]
    audience: Audience
    now: Callable[[], float]


class Attention:
    """Every change takes effect at once."""

    def __init__(self, muting: Muting, around: Outside) -> None:
        self._muting = muting
        self._around = around

    # ------------------------------------------------------------ muting

    def replace_windows(self, windows: Windows) -> None:
        """Mute by what another alerts.yaml says."""
        self._muting.replace_windows(windows)
        self.settle(self._around.now())

    def windows(self) -> Windows:
        """What alerts.yaml says of muting."""
        return self._muting.windows

    def silences(self) -> tuple[wire.Silence, ...]:
        """Those that are in force or yet to come, by their end."""
        return self._muting.silences()

    def put_silences(self, silences: Iterable[wire.Silence]) -> None:
        """Mute by these as well, which are stored; of a known one the end may be another, or now."""
        now = self._around.now()
        self._muting.put_silences(silences)
        self._muting.drop_ended(now)
        self._around.audience.publish([wire.SilencesChanged(silences=self.silences())])
        self.settle(now)

    def settle(self, now: float) -> None:
        """Tell of alerts that are muted now, or are no more. To be called every second."""
        if self._muting.drop_ended(now):
            self._around.audience.publish([wire.SilencesChanged(silences=self.silences())])
        self._tell([self._changed(one, "muted", now) for one in self._muting.settle(now)])

    # ------------------------------------------------------------ care

    def matching(self, matchers: Sequence[wire.Matcher]) -> list[str]:
        """Ids of the alerts that fire and meet all of these."""
        return [one.firing.id for one in self._muting if matches(matchers, one.firing.labels)]

    def firing(self, alert_ids: Iterable[str]) -> list[str]:
        """Those of these ids whose alerts fire."""
        return [alert_id for alert_id in dict.fromkeys(alert_ids) if self._muting.find(alert_id) is not None]

    def taken(self, alert_ids: Iterable[str]) -> list[str]:
        """Of these the ids of those that fire and that somebody takes care of."""
        found = [(alert_id, self._muting.find(alert_id)) for alert_id in dict.fromkeys(alert_ids)]
        return [alert_id for alert_id, one in found if one is not None and one.acknowledged is not None]

    def acknowledge(self, alert_ids: Iterable[str], *, by: str | None, note: str | None = None) -> int:
        """Somebody takes care of these alerts; `by` None: nobody does any more. Says for how many that is news.

        Raises NotFiringError, and then changes nothing.
        """
        now = self._around.now()
        care = wire.Acknowledgement(by=by, at=now, note=note) if by is not None else None
        found = [self._firing(alert_id) for alert_id in dict.fromkeys(alert_ids)]
        changed = [one for one in found if not _same(one.acknowledged, care)]
        for one in changed:
            one.acknowledged = care
        self._tell([self._changed(one, "acknowledged", now) for one in changed])
        return len(changed)

    def _firing(self, alert_id: str) -> Open:
        found = self._muting.find(alert_id)
        if found is None:
            raise NotFiringError(f'the alert "{alert_id}" does not fire: there is nothing to take care of')
        return found

    # ------------------------------------------------------------ telling

    def _changed(self, one: Open, change: wire.TransitionChange, now: float) -> wire.Transition | None:
        """A firing alert with its mutes and who takes care of it, as of now. None: it is no more."""
        alert = self._around.view(one.firing.id)
        if alert is None:
            return None
        care = {"muted": one.muted, "acknowledged": one.acknowledged}
        return transition_of(alert, at=one.next_at(now), change=change, state="firing", quiet=one.is_quiet, **care)

    def _tell(self, changes: Sequence[wire.Transition | None]) -> None:
        said = [one for one in changes if one is not None]
        if said:
            self._around.announce(said)


def _same(before: wire.Acknowledgement | None, care: wire.Acknowledgement | None) -> bool:
    """But for the time."""
    if before is None or care is None:
        return before is care
    return msgspec.structs.replace(before, at=care.at) == care
