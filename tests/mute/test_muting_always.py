"""Whatever happens in whatever order: what is remembered of mutes is what looking at everything anew would say."""

from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace
from tests.mute.samples import matchers, silence

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition, Inhibitions
from oomwatch.core.mute.muter import firing_of
from oomwatch.core.mute.stages import Windows, timed_stages
from oomwatch.core.mute.times import Maintenance
from oomwatch.service.muting import Muting

WINDOWS = (
    Windows(),
    Windows(inhibitions=(Inhibition(matchers("severity=critical"), matchers("severity!=critical"), ("node",)),)),
    Windows(maintenance=(Maintenance("m", 10, 30, matchers('node=~"n[12]"')),)),
    Windows(inhibitions=(Inhibition(matchers("node!=n1"), matchers('severity=~"info|warning"'), ()),)),
)
SILENCES = tuple(
    silence(text, silence_id=text, start=start, end=end)
    for text, start, end in (("node=n1", 5, 20), ("severity=warning", 15, 25), ('gpu=""', 0, 12))
)

_ALERTS = some.tuples(some.sampled_from(["n1", "n2"]), some.integers(0, 1))
_HAPPENINGS = some.lists(
    some.one_of(
        some.tuples(some.just("fires"), _ALERTS, some.sampled_from(wire.SEVERITIES)),
        some.tuples(some.just("is over"), _ALERTS),
        some.tuples(some.just("silence"), some.sampled_from(SILENCES)),
        some.tuples(some.just("ends"), some.sampled_from(SILENCES)),
        some.tuples(some.just("windows"), some.sampled_from(WINDOWS)),
        some.tuples(some.just("time"), some.floats(0.5, 6)),
    ),
    max_size=25,
)


def _said(alert: tuple[str, int], severity: wire.Severity, state: wire.AlertState, now: float) -> wire.Transition:
    labels = {"node": alert[0]} | ({"gpu": "0"} if alert[1] else {})
    return wire.Transition(
        id=f"{alert}", alert="a", severity=severity, state=state, at=now, started_at=now, labels=labels
    )


class _Scene:
    def __init__(self) -> None:
        self.now = 0.0
        self.muting = Muting()
        self.open: dict[tuple[str, int], wire.Transition] = {}
        self.silences: dict[str, wire.Silence] = {}
        self.windows = Windows()

    def happens(self, what: str, *details: object) -> None:
        getattr(self, f"_{what.replace(' ', '_')}")(*details)

    def _fires(self, alert: tuple[str, int], severity: wire.Severity) -> None:
        said = _said(alert, severity, "firing", self.now)
        if alert in self.open:
            said = replace(said, change="severity")
            del self.open[alert]
        self.open[alert] = said
        self.muting.stamp([said], self.now)

    def _is_over(self, alert: tuple[str, int]) -> None:
        if alert in self.open:
            last = self.open.pop(alert)
            self.muting.stamp([replace(last, state="resolved", change="state", at=self.now)], self.now)

    def _silence(self, one: wire.Silence) -> None:
        self.silences[one.id] = one
        self.muting.put_silences([one])

    def _ends(self, one: wire.Silence) -> None:
        self._silence(replace(one, ends_at=min(self.now, one.ends_at)))

    def _windows(self, windows: Windows) -> None:
        self.windows = windows
        self.muting.replace_windows(windows)

    def _time(self, seconds: float) -> None:
        self.now += seconds

    def anew(self) -> dict[str, tuple[wire.Mute, ...]]:
        """By id, from nothing."""
        firing = [firing_of(said) for said in self.open.values()]
        timed = timed_stages(self.windows, tuple(self.silences.values()))
        last = Inhibitions(self.windows.inhibitions, firing)
        inhibited = {one.id: last.mutes(one, self.now) for one in firing}
        return {
            one.id: (*timed.mutes(one, self.now), *([mute] if (mute := inhibited[one.id]) is not None else []))
            for one in firing
        }


@given(happenings=_HAPPENINGS)
def test_what_is_remembered_is_what_looking_anew_would_say(happenings: list[tuple[str, ...]]) -> None:
    scene = _Scene()
    for what, *details in happenings:
        scene.happens(what, *details)
        scene.muting.drop_ended(scene.now)
        before = {one.firing.id: one.muted for one in scene.muting}
        changed = {one.firing.id for one in scene.muting.settle(scene.now)}
        after = {one.firing.id: one.muted for one in scene.muting}
        assert after == scene.anew()
        assert changed == {key for key in after if after[key] != before[key]}
        assert scene.muting.settle(scene.now) == []
