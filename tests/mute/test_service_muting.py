"""Mutes and acknowledgements of alerts in a running service: when they are told, and that they outlive a restart."""

import pytest
from msgspec.structs import replace
from tests.mute.samples import matchers, silence
from tests.server.house import START, House, hello, sample

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import Maintenance
from oomwatch.rulefile import parse_rules
from oomwatch.service.attention import NotFiringError
from oomwatch.service.muting import Muting

TWO_RULES = parse_rules("""
rules:
  - alert: high
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 50%}
    keep_firing_for: 10s
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: full
    severity: critical
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 5s
    summary: "GPU {gpu} of {node} is {value} full"
""").rules
GRAVER = Windows(
    inhibitions=(
        Inhibition(matchers('severity="critical"'), matchers('severity=~"warning|info"'), ("node", "gpu", "run")),
    )
)
NODE = 'node="gpu-07"'


class Scene:
    """One card in a house with two rules, its memory told second by second."""

    def __init__(self, *silences: wire.Silence, windows: Windows = GRAVER) -> None:
        self.house = House(TWO_RULES)
        self.service = self.house.service
        self.service.muting.replace_windows(windows)
        self.service.muting.put_silences(silences)
        self.session, _ = self.house.connect(hello())
        self.seq = 0

    def second(self, used_gib: float, times: int = 1) -> None:
        for _ in range(times):
            self.house.now += 1
            self.seq += 1
            self.service.reception.take(self.session, sample(self.seq, used_gib, at=self.house.now))
            self.service.beat()
            self.house.flush()

    def told(self, alert: str = "high") -> list[tuple[str, str, list[str]]]:
        """Change, state and the kinds of the mutes of all that was told of an alert."""
        return [
            (one.change, one.state, [mute.kind for mute in one.muted])
            for one in self.house.shelf.transitions
            if one.alert == alert
        ]

    def shown(self, alert: str = "high") -> wire.Alert:
        return next(one for one in self.service.board.all() if one.alert == alert)


def test_an_alert_that_fires_while_it_is_silenced_says_so_from_the_beginning() -> None:
    scene = Scene(silence(NODE, end=START + 100))
    scene.second(50)
    assert scene.told() == [("state", "firing", ["silence"])]
    (mute,) = scene.shown().muted
    assert (mute.by, mute.until) == ("s1", START + 100)


def test_the_end_of_a_silence_is_told_once_in_the_second_in_which_it_ends() -> None:
    scene = Scene(silence(NODE, end=START + 5))
    scene.second(50, times=4)
    assert scene.told() == [("state", "firing", ["silence"])]
    scene.second(50, times=3)
    assert scene.told() == [("state", "firing", ["silence"]), ("muted", "firing", [])]
    assert scene.house.shelf.transitions[-1].at == START + 5
    assert scene.shown().muted == ()


def test_a_silence_that_begins_or_is_ended_early_takes_effect_at_once() -> None:
    scene = Scene()
    scene.second(50)
    scene.service.attention.put_silences([silence(NODE, start=scene.house.now, end=START + 100)])
    scene.service.attention.put_silences([silence(NODE, start=scene.house.now, end=scene.house.now)])
    scene.house.flush()
    assert scene.told()[1:] == [("muted", "firing", ["silence"]), ("muted", "firing", [])]
    first, second = scene.house.shelf.transitions[1:]
    assert first.at < second.at, "the database tells one transition from another by its time"
    messages = scene.house.browsers.of(wire.SilencesChanged)
    assert [[one.id for one in message.silences] for message in messages] == [["s1"], []]


def test_a_silence_that_ends_leaves_the_page() -> None:
    scene = Scene(silence(NODE, end=START + 2))
    assert [one.id for one in scene.service.snapshot().silences] == ["s1"]
    scene.second(10, times=2)
    assert scene.service.snapshot().silences == ()
    assert scene.house.browsers.of(wire.SilencesChanged)[-1].silences == ()


def test_a_mute_is_told_with_the_alerts_numbers_and_words() -> None:
    scene = Scene(silence(NODE, end=START + 2))
    scene.second(50, times=3)
    changed = scene.house.shelf.transitions[-1]
    assert changed.change == "muted"
    assert changed.texts["en"].summary.startswith("GPU 0 of gpu-07 is 63 %")  # 62.5


def test_an_alert_that_ends_keeps_the_mutes_that_it_had() -> None:
    scene = Scene(silence(NODE, end=START + 100))
    scene.second(50)
    scene.second(10, times=12)
    assert scene.told() == [("state", "firing", ["silence"]), ("state", "resolved", ["silence"])]
    assert [mute.kind for mute in scene.shown().muted] == ["silence"]


def test_of_two_alerts_that_fire_at_the_same_moment_the_graver_one_mutes_the_other() -> None:
    scene = Scene()
    scene.second(79)
    (critical,) = [one for one in scene.house.shelf.transitions if one.alert == "full"]
    assert scene.told("full") == [("state", "firing", [])]
    assert scene.told("high") == [("state", "firing", ["inhibited"])]
    assert scene.shown().muted == (wire.Mute(kind="inhibited", by=critical.id, note="full"),)


def test_a_warning_is_muted_once_it_becomes_critical_and_no_more_when_that_is_over() -> None:
    scene = Scene()
    scene.second(50)
    scene.second(79)
    scene.second(50, times=8)
    assert scene.told() == [
        ("state", "firing", []),
        ("muted", "firing", ["inhibited"]),
        ("muted", "firing", []),
    ]


def test_maintenance_of_another_rule_file_takes_effect_at_once() -> None:
    scene = Scene()
    scene.second(50)
    rack = Maintenance("rack 7", START, START + 4, matchers(NODE))
    scene.service.attention.replace_windows(Windows(maintenance=(rack,)))
    scene.second(50, times=4)
    assert scene.told()[1:] == [("muted", "firing", ["maintenance"]), ("muted", "firing", [])]


def test_a_clock_that_is_set_has_silences_looked_at_again() -> None:
    scene = Scene(silence(NODE, end=START + 1000))
    scene.second(50, times=2)
    scene.house.set_by = 2000.0
    scene.second(50)
    assert scene.told()[1:] == [("muted", "firing", [])]


def test_a_defect_in_muting_costs_no_alert(caplog: pytest.LogCaptureFixture) -> None:
    unreadable = wire.Matcher(label="node", op="=~", value="(")  # nothing that is checked lets it in
    scene = Scene(replace(silence(NODE, end=START + 100), matchers=(unreadable,)))
    scene.second(50)
    assert scene.told() == [("state", "firing", [])]
    assert "muting what is new failed" in caplog.text
    assert scene.service.defects.total > 0


def test_after_a_restart_mutes_go_on_and_nothing_is_told_twice() -> None:
    before = Scene(silence(NODE, end=START + 20))
    before.second(79, times=2)
    after = Scene(silence(NODE, end=START + 20))
    after.house.now = before.house.now
    after.service.restore(before.house.shelf.transitions, before.service.board.all())
    after.second(79, times=3)
    assert after.house.shelf.transitions == []
    assert [mute.kind for mute in after.shown().muted] == ["silence", "inhibited"]
    after.second(79, times=18)
    assert after.told() == [("muted", "firing", ["inhibited"])]


def test_a_silence_that_ended_while_the_server_was_down_is_told_of_after_the_start() -> None:
    before = Scene(silence(NODE, end=START + 20))
    before.second(50)
    after = Scene()
    after.house.now = START + 30
    after.service.restore(before.house.shelf.transitions, before.service.board.all())
    after.second(50, times=2)  # the first second after a pause is passed over
    assert after.told() == [("muted", "firing", [])]


# ---------------------------------------------------------------- care


def test_an_acknowledgement_is_stored_and_told_and_stays_with_the_alert() -> None:
    scene = Scene()
    scene.second(50)
    alert = scene.shown()
    assert scene.service.attention.acknowledge([alert.id], by="lin", note="on it") == 1
    scene.house.flush()
    care = wire.Acknowledgement(by="lin", at=scene.house.now, note="on it")
    assert scene.house.shelf.transitions[-1].acknowledged == care
    assert scene.told()[-1] == ("acknowledged", "firing", [])
    assert scene.shown().acknowledged == care
    scene.second(60, times=7)
    assert scene.shown().acknowledged == care, "though its number was told anew"
    scene.second(10, times=12)
    assert scene.house.shelf.transitions[-1].state == "resolved"
    assert scene.house.shelf.transitions[-1].acknowledged == care


def test_the_same_word_twice_is_told_once_and_taking_it_back_is_told() -> None:
    scene = Scene()
    scene.second(50)
    alert = scene.shown().id
    attention = scene.service.attention
    assert [attention.acknowledge([alert, alert], by="lin"), attention.acknowledge([alert], by="lin")] == [1, 0]
    assert attention.acknowledge([alert], by="mei") == 1
    assert [attention.acknowledge([alert], by=None), attention.acknowledge([alert], by=None)] == [1, 0]
    scene.house.flush()
    assert [one.acknowledged and one.acknowledged.by for one in scene.house.shelf.transitions[1:]] == [
        "lin",
        "mei",
        None,
    ]
    assert scene.shown().acknowledged is None


def test_what_does_not_fire_cannot_be_acknowledged_and_nothing_else_is() -> None:
    scene = Scene()
    scene.second(50)
    with pytest.raises(NotFiringError, match="nobody"):
        scene.service.attention.acknowledge([scene.shown().id, "nobody"], by="lin")
    scene.house.flush()
    assert len(scene.house.shelf.transitions) == 1
    scene.second(10, times=12)
    with pytest.raises(NotFiringError, match="does not fire"):
        scene.service.attention.acknowledge([scene.shown().id], by="lin")


def test_alerts_are_found_by_matchers() -> None:
    scene = Scene()
    scene.second(79)
    assert scene.service.attention.matching(matchers("severity=critical")) == [scene.shown("full").id]
    assert len(scene.service.attention.matching(matchers(NODE))) == 2


def _raised(severity: wire.Severity, change: wire.TransitionChange, at: float) -> wire.Transition:
    labels = {"node": "gpu-07"}
    return wire.Transition(
        id="1", alert="a", severity=severity, state="firing", at=at, started_at=1, labels=labels, change=change
    )


def test_an_alert_that_is_raised_stays_acknowledged_and_is_muted_as_what_it_is_now() -> None:
    muting = Muting()
    muting.put_silences([silence("severity=info", end=100)])
    (first,) = muting.stamp([_raised("info", "state", 1)], 1)
    found = muting.find("1")
    assert found is not None
    found.acknowledged = care = wire.Acknowledgement(by="lin", at=2)
    (raised,) = muting.stamp([_raised("critical", "severity", 3)], 3)
    assert [mute.kind for mute in first.muted] == ["silence"]
    assert (raised.muted, raised.acknowledged) == ((), care)


def test_an_acknowledgement_outlives_a_restart() -> None:
    before = Scene()
    before.second(50)
    before.service.attention.acknowledge([before.shown().id], by="lin")
    before.house.flush()
    after = Scene()
    after.house.now = before.house.now
    after.service.restore(before.house.shelf.transitions, before.service.board.all())
    after.second(10, times=12)
    ended = after.house.shelf.transitions[-1]
    assert (ended.state, ended.acknowledged and ended.acknowledged.by) == ("resolved", "lin")


def test_an_alert_can_be_acknowledged_before_anybody_was_told_of_it() -> None:
    scene = Scene()
    scene.seq += 1
    scene.service.reception.take(scene.session, sample(1, 50, at=scene.house.now))
    (alert_id,) = scene.service.attention.matching(matchers(NODE))
    scene.service.attention.acknowledge([alert_id], by="lin")
    scene.house.flush()
    assert [one[0] for one in scene.told()] == ["state", "acknowledged"]
    assert scene.shown().state == "firing"
    assert scene.shown().acknowledged is not None
