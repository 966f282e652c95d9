"""Silences and maintenance windows: from one moment to another."""

from math import inf

from tests.mute.samples import firing, matchers, silence

from oomwatch import wire
from oomwatch.core.mute.silence import Silences
from oomwatch.core.mute.stages import Windows, timed_stages
from oomwatch.core.mute.times import Maintenance, Maintenances


def test_a_silence_mutes_what_it_matches_from_its_beginning_up_to_its_end() -> None:
    silences = Silences([silence('node="n"', start=10, end=20, note="new driver")])
    muted = wire.Mute(kind="silence", by="s1", until=20, note="new driver")
    assert [silences.mutes(firing(node="n"), now) for now in (9.9, 10.0, 19.9, 20.0)] == [None, muted, muted, None]
    assert silences.mutes(firing(node="other"), 15) is None


def test_of_several_silences_the_one_that_ends_last_is_named() -> None:
    silences = Silences([silence('node="n"', end=50), silence('node="n"', silence_id="longer", end=90)])
    found = silences.mutes(firing(node="n"), 10)
    assert found is not None
    assert found.by == "longer"


def test_a_silence_says_when_its_answer_changes_next() -> None:
    silences = Silences([silence('node="n"', start=10, end=20)])
    assert [silences.next_edge(now) for now in (0, 10, 20)] == [10, 20, inf]


def test_maintenance_mutes_what_it_matches_while_it_lasts() -> None:
    windows = Maintenances([Maintenance("rack 7", 10, 20, matchers('node=~"gpu-7.*"'))])
    assert windows.mutes(firing(node="gpu-71"), 10) == wire.Mute(kind="maintenance", by="rack 7", until=20)
    assert windows.mutes(firing(node="gpu-71"), 20) is None
    assert windows.mutes(firing(node="gpu-81"), 10) is None
    assert [windows.next_edge(now) for now in (0, 10, 20)] == [10, 20, inf]


def test_reasons_are_told_in_the_order_of_the_stages() -> None:
    windows = Windows(maintenance=(Maintenance("rack 7", 0, 30, matchers('node="n"')),))
    stages = timed_stages(windows, [silence('node="n"', end=20)])
    assert [mute.kind for mute in stages.mutes(firing(node="n"), 10)] == ["silence", "maintenance"]
    assert stages.next_edge(10) == 20


def test_without_silences_and_windows_nothing_is_muted_and_nothing_will_change() -> None:
    stages = timed_stages(Windows(), [])
    assert stages.mutes(firing(), 10) == ()
    assert stages.next_edge(10) == inf
