"""A message has the figures of the moment at which it is written."""

from collections.abc import Callable

import msgspec
from tests.server.notify_samples import notice, transition

from oomwatch import wire
from oomwatch.notify.current import as_of_now
from oomwatch.story import alert_view

FIRED = transition(0, value=600.0, unit="seconds", facts={"eta_seconds": 600.0, "incident": "i-1"})


def board(value: float, *, state: wire.AlertState = "firing") -> Callable[[str], wire.Alert | None]:
    now = msgspec.structs.replace(FIRED, value=value, state=state, facts={"eta_seconds": value})
    return {now.id: alert_view(now, fired_at=FIRED.at)}.get


def test_the_figures_are_those_of_the_board_also_where_nothing_is_left() -> None:
    (one,) = as_of_now(notice([FIRED]), board(0.0)).news
    assert (one.value, one.facts) == (0.0, {"eta_seconds": 0.0, "incident": "i-1"})


def test_the_message_stays_the_same_message() -> None:
    before = notice([FIRED])
    assert as_of_now(before, board(42.0)).id == before.id


def test_an_end_and_an_alert_that_is_over_are_told_as_they_were() -> None:
    over = notice([msgspec.structs.replace(FIRED, state="resolved")])
    assert as_of_now(over, board(42.0)) == over
    assert as_of_now(notice([FIRED]), board(42.0, state="resolved")) == notice([FIRED])
    assert as_of_now(notice([FIRED]), lambda _: None) == notice([FIRED])
