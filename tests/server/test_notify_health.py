"""How long a channel that fails is left alone, and when others hear of it."""

import pytest

from oomwatch import wire
from oomwatch.letters import Standing
from oomwatch.notify.backoff import pause_seconds
from oomwatch.notify.health import FAILING_SECONDS, Health
from oomwatch.notify.outcome import Delivered, Failed, TryAgain

START = 1_700_000_000.0
BUSY, GONE, GOOD = TryAgain("busy"), Failed("no such hook"), Delivered()


def health(standing: Standing | None = None) -> Health:
    return Health(wire.ChannelState(name="ops", kind="webhook"), standing or Standing("ops", START))


@pytest.mark.parametrize(
    ("failures", "chance", "asked", "expected"),
    [
        (1, 0.0, None, 1.0),
        (2, 0.0, None, 2.0),
        (5, 0.0, None, 16.0),
        (9, 0.0, None, 256.0),
        (10, 0.0, None, 300.0),
        (10_000, 0.0, None, 300.0),
        (10, 1.0, None, 150.0),
        (1, 1.0, 30.0, 30.0),
        (10, 0.0, 30.0, 300.0),
    ],
)
def test_pauses_double_up_to_five_minutes_and_never_undercut_what_was_asked(
    failures: int, chance: float, asked: float | None, expected: float
) -> None:
    assert pause_seconds(failures, chance, asked_seconds=asked) == expected


def test_a_channel_that_refuses_is_announced_once_and_once_that_it_works_again() -> None:
    channel = health()
    assert [channel.note(one, 0.0, START) for one in (GONE, GONE, BUSY, GOOD, GOOD)] == [
        True, False, False, True, False,
    ]  # fmt: skip
    assert (channel.state.failed_total, channel.state.retries_total, channel.state.delivered_total) == (2, 1, 2)


def test_a_channel_is_failing_at_once_and_announced_when_it_does_not_get_better() -> None:
    channel = health()
    seen = []
    for outcome, at in ((BUSY, 0.0), (BUSY, FAILING_SECONDS - 1), (BUSY, FAILING_SECONDS), (GONE, FAILING_SECONDS + 1)):
        is_announced = channel.note(outcome, at, START)
        seen.append((channel.state.health, is_announced))
    assert seen == [("failing", False), ("failing", False), ("failing", True), ("failed", False)]


def test_a_success_in_between_begins_the_ten_minutes_anew() -> None:
    channel = health()
    channel.note(BUSY, 0.0, START)
    assert not channel.note(GOOD, 500.0, START)
    assert channel.state.health == "ok"
    assert not channel.note(BUSY, FAILING_SECONDS, START)


def test_what_refused_stays_failed_until_something_arrives() -> None:
    channel = health()
    channel.note(GONE, 0.0, START)
    channel.note(BUSY, 1.0, START)
    assert channel.state.health == "failed"


def test_a_failure_is_remembered_over_a_restart_and_not_announced_twice() -> None:
    first = health()
    first.note(GONE, 0.0, START)
    told = first.notice("team", START)
    second = health(first.standing)
    assert (second.state.health, second.state.last_error) == ("failed", "no such hook")
    assert not second.note(GONE, 0.0, START + 100)
    assert second.note(GOOD, 1.0, START + 101)
    over = second.notice("team", START + 101)
    assert (told.state, over.state) == ("firing", "resolved")
    assert told.incident == over.incident
    assert told.id != over.id
    assert over.channel == second.state


def test_each_channel_is_told_by_an_id_of_its_own() -> None:
    channel = health()
    channel.note(GONE, 0.0, START)
    assert channel.notice("team", START).id != channel.notice("pager", START).id
