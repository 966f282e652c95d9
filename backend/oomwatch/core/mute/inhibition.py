"""Alerts that a graver one covers: while it fires, nobody needs word of those about the same subject."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
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
    """Of each subject the alert that fired first: an answer that does not change when others come."""

    rule: Inhibition
    all: dict[Key, Firing]
    no_targets: dict[Key, Firing]  # without those that meet `target` too

    def of(self, labels: Mapping[str, str]) -> Firing | None:
        if not matches(self.rule.target, labels):
            return None
        sources = self.no_targets if matches(self.rule.source, labels) else self.all
        return sources.get(self.rule.key(labels))


class Inhibitions:
    """The rules, and all that fires, found by the labels that have to be equal."""

    def __init__(self, rules: Sequence[Inhibition], firing: Iterable[Firing]) -> None:
        self._sources = [_Sources(rule, {}, {}) for rule in rules]
        for alert in sorted(firing, key=lambda one: (one.fired_at, one.id)) if rules else ():
            for sources in self._sources:
                _enter(alert, sources)

    def mutes(self, alert: Firing, _now: float) -> wire.Mute | None:
        for sources in self._sources:
            source = sources.of(alert.labels)
            if source is not None:
                return wire.Mute(kind="inhibited", by=source.id, note=source.labels["alert"])
        return None

    def next_edge(self, _now: float) -> float:
        return inf


def _enter(alert: Firing, sources: _Sources) -> None:
    rule = sources.rule
    if matches(rule.source, alert.labels):
        key = rule.key(alert.labels)
        sources.all.setdefault(key, alert)
        if not matches(rule.target, alert.labels):
            sources.no_targets.setdefault(key, alert)
