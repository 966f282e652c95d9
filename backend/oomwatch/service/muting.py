"""Of every alert that fires: why nobody is sent word of it, and who takes care of it.

A mute is a state of an alert. It is put on what the engine says before that is stored; where it begins or ends
between two words of the engine, that is a transition of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf

import msgspec

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibitions
from oomwatch.core.mute.muter import Firing, firing_of
from oomwatch.core.mute.stages import Windows, timed_stages

APART_SECONDS = 1e-3  # two things told of one alert bear different times


class Open:
    """An alert that fires, as far as muting goes."""

    def __init__(self, said: wire.Transition) -> None:
        self.muted: tuple[wire.Mute, ...] = ()
        self.acknowledged: wire.Acknowledgement | None = None
        self.take(said)

    def take(self, said: wire.Transition) -> None:
        """The engine says something of it."""
        self.firing: Firing = firing_of(said)
        self.is_quiet = said.quiet
        self.told_at = said.at
        self.timed: tuple[wire.Mute, ...] | None = None  # by the stages that depend on time; None: look again

    def next_at(self, now: float) -> float:
        """When what is told of it next may be said to be."""
        self.told_at = max(now, self.told_at + APART_SECONDS)
        return self.told_at


class Muting:
    """Looks at alerts again only when an answer may have changed: an edge of a window, other silences, what fires."""

    def __init__(self) -> None:
        self._windows = Windows()
        self._silences: dict[str, wire.Silence] = {}
        self._open: dict[str, Open] = {}
        self._timed = timed_stages(self._windows, ())
        self._inhibitions = Inhibitions(())
        self._edge = -inf  # when time changes something next
        self._settled_at = inf
        self._is_settled = False

    def find(self, alert_id: str) -> Open | None:
        """An alert that fires."""
        return self._open.get(alert_id)

    def __iter__(self) -> Iterator[Open]:
        return iter(self._open.values())

    # ------------------------------------------------------------ what mutes

    def replace_windows(self, windows: Windows) -> None:
        """Put what another alerts.yaml says in force; `settle` tells what that changes."""
        if windows != self._windows:
            self._windows = windows
            self._inhibitions = Inhibitions(windows.inhibitions, [one.firing for one in self._open.values()])
            self.look_again()

    @property
    def windows(self) -> Windows:
        """What alerts.yaml says of muting."""
        return self._windows

    def silences(self) -> tuple[wire.Silence, ...]:
        """Those that are in force or yet to come, by their end."""
        return tuple(sorted(self._silences.values(), key=lambda silence: (silence.ends_at, silence.id)))

    def put_silences(self, silences: Iterable[wire.Silence]) -> None:
        """New ones, or known ones with another end."""
        self._silences |= {silence.id: silence for silence in silences}
        self.look_again()

    def drop_ended(self, now: float) -> bool:
        """Forget silences that are over. True: there were some."""
        ended = [silence.id for silence in self._silences.values() if silence.ends_at <= now]
        for silence_id in ended:
            del self._silences[silence_id]
        if ended:
            self.look_again()
        return bool(ended)

    def look_again(self) -> None:
        """Windows, silences or the clock are other ones."""
        self._timed = timed_stages(self._windows, tuple(self._silences.values()))
        self._edge = -inf
        self._is_settled = False

    # ------------------------------------------------------------ what fires

    def restore(self, told: Iterable[wire.Transition]) -> None:
        """All that was told, before a restart, of alerts that fire still, in its order."""
        for said in told:
            self._take(said)
            one = self._open.get(said.id)
            if one is None:
                continue
            one.told_at = max(one.told_at, said.at)
            if said.change == "acknowledged":
                one.acknowledged = said.acknowledged
            elif said.change in ("state", "severity", "muted"):
                one.muted = said.muted

    def stamp(self, said: Sequence[wire.Transition], now: float) -> list[wire.Transition]:
        """What the engine says, with the mutes as of now; the end of an alert with those that it had.

        What fires at the same moment mutes others of the same moment.
        """
        known = {one.id: self._open.get(one.id) or Open(one) for one in said}
        for one in said:
            self._take(one)
        return [self._stamped(one, self._open.get(one.id) or known[one.id], now) for one in said]

    def _take(self, said: wire.Transition) -> None:
        before = self._open.get(said.id)
        if said.change not in ("state", "severity"):
            return
        if before is not None:
            self._inhibitions.remove(before.firing)
        if said.state == "resolved":
            self._open.pop(said.id, None)
        elif before is not None:
            before.take(said)
        else:
            self._open[said.id] = Open(said)
        if said.state != "resolved":
            self._inhibitions.add(self._open[said.id].firing)
        self._is_settled = False

    def _stamped(self, said: wire.Transition, one: Open, now: float) -> wire.Transition:
        if said.change not in ("state", "severity"):
            return said
        if said.state != "resolved":
            one.muted = self._mutes(one, now)
        return msgspec.structs.replace(said, muted=one.muted, acknowledged=one.acknowledged)

    def _mutes(self, one: Open, now: float) -> tuple[wire.Mute, ...]:
        if one.timed is None:
            one.timed = self._timed.mutes(one.firing, now)
        inhibited = self._inhibitions.mutes(one.firing, now)
        return one.timed if inhibited is None else (*one.timed, inhibited)

    # ------------------------------------------------------------ what changes

    def settle(self, now: float) -> list[Open]:
        """Alerts that are muted otherwise than was told; from now on they count as told of."""
        has_edge = not self._settled_at <= now < self._edge
        if self._is_settled and not has_edge:
            return []
        if has_edge:
            self._edge = self._timed.next_edge(now)
            for one in self._open.values():
                one.timed = None
        changed = []
        for one in self._open.values():
            mutes = self._mutes(one, now)
            if mutes != one.muted:
                one.muted = mutes
                changed.append(one)
        self._settled_at, self._is_settled = now, True
        return changed
