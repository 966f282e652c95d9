"""Silences in the database, and what fired lately as matchers see it."""

import logging
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from tests.mute.samples import silence

from oomwatch import wire
from oomwatch.store.store import Store

DAY = 86_400.0


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def test_silences_are_kept_and_found_by_their_end(store: Store) -> None:
    soon, late = silence("node=a", silence_id="1", end=200), silence("node=b", silence_id="2", end=300, note="rack")
    store.keep_silences([late, soon])
    assert store.silences(100) == [soon, late]
    assert store.silences(200) == [late]


def test_a_silence_that_is_ended_early_has_another_end(store: Store) -> None:
    kept = silence("node=a", end=300)
    store.keep_silences([kept])
    store.keep_silences([replace(kept, ends_at=150)])
    assert store.silences(0) == [replace(kept, ends_at=150)]


def test_silences_are_forgotten_with_history(store: Store) -> None:
    store.keep_silences([silence("node=a", silence_id="old", end=10 * DAY), silence("node=a", end=20 * DAY)])
    store.prune(25 * DAY, 10 * DAY)
    assert [one.id for one in store.silences(0)] == ["s1"]


def test_a_silence_that_this_version_cannot_read_is_passed_over(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    strange = wire.Matcher(label="colour", op="=", value="red")
    store.keep_silences([replace(silence("node=a", silence_id="strange"), matchers=(strange,)), silence("node=a")])
    with caplog.at_level(logging.ERROR):
        assert [one.id for one in store.silences(0)] == ["s1"]
    assert 'no label "colour"' in caplog.text


def _fired(alert_id: str, at: float, change: wire.TransitionChange = "state") -> wire.Transition:
    return wire.Transition(
        id=alert_id, alert="high", severity="warning", state="firing", at=at, started_at=at, labels={"gpu": "3"},
        change=change,
    )  # fmt: skip


def test_what_fired_lately_is_told_once_each_newest_first(store: Store) -> None:
    resolved = replace(_fired("b", 250), state="resolved")
    store.append([_fired("a", 100), _fired("b", 200), _fired("b", 210, "muted"), resolved, _fired("c", 300)])
    found = store.fired(150)
    assert [(one.at, one.alert, one.severity, one.labels) for one in found] == [
        (300, "high", "warning", {"gpu": "3"}),
        (200, "high", "warning", {"gpu": "3"}),
    ]
