"""Alerts that a graver one covers: while it fires, nobody needs word of those about the same subject."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.core.mute.matcher import matches
from oomwatch.core.mute.muter import Firing

Key: TypeAlias = "tuple[str, ...]"


class Inhibition(NamedTuple):
    """While an alert fires that meets `source`, those that meet `target` and agree with it in `equal` are muted.

    As in Alertmanager: a label that both lack is equal; a muted source inhibits all the same; and what meets both sides
    is muted only by a source that is no target, so that nothing mutes itself, nor two alerts each other.
    """

    source: tuple[wire.Matcher, ...]
    target: tuple[wire.Matcher, ...]
    equal: tuple[str, ...]

    def key(self, labels: Mapping[str, str]) -> Key:
        return tuple([labels.get(name, "") for name in self.equal])


class _Sources(NamedTuple):
    """What fires and meets `source`, by subject and id, in the order in which it was told."""

    rule: Inhibition
    all: dict[Key, dict[str, Firing]]
    no_targets: dict[Key, dict[str, Firing]]  # without those that meet `target` too

    def of(self, labels: Mapping[str, str]) -> Firing | None:
        """The first: an answer that does not change when others come."""
        if not matches(self.rule.target, labels):
            return None
        sources = self.no_targets if matches(self.rule.source, labels) else self.all
        return next(iter(sources.get(self.rule.key(labels), {}).values()), None)

    def tables(self, labels: Mapping[str, str]) -> "tuple[dict[Key, dict[str, Firing]], ...]":
        """Where an alert with these labels belongs."""
        if not matches(self.rule.source, labels):
            return ()
        return (self.all,) if matches(self.rule.target, labels) else (self.all, self.no_targets)


class Inhibitions:
    """The rules, and all that fires, found by the labels that have to be equal."""

    def __init__(self, rules: Sequence[Inhibition], firing: Iterable[Firing] = ()) -> None:
        self._sources = [_Sources(rule, {}, {}) for rule in rules]
        for alert in firing:
            self.add(alert)

    def add(self, alert: Firing) -> None:
        """It fires."""
        for sources in self._sources:
            for table in sources.tables(alert.labels):
                table.setdefault(sources.rule.key(alert.labels), {})[alert.id] = alert

    def remove(self, alert: Firing) -> None:
        """It does not any more, or has other labels now: what was added is told."""
        for sources in self._sources:
            key = sources.rule.key(alert.labels)
            for table in sources.tables(alert.labels):
                here = table.get(key, {})
                here.pop(alert.id, None)
                if not here:
                    table.pop(key, None)

    def mutes(self, alert: Firing, _now: float) -> wire.Mute | None:
        for sources in self._sources:
            source = sources.of(alert.labels)
            if source is not None:
                return wire.Mute(kind="inhibited", by=source.id, note=source.labels["alert"])
        return None
