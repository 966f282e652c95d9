"""What an alert is: the same for the page, for the database and for every channel, whatever was told of it."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace
from tests.server.notify_samples import START, transition

from oomwatch import wire
from oomwatch.notify.member import Member, Ways
from oomwatch.story import alert_of, alert_view

_MUTES = some.sampled_from([(), (wire.Mute(kind="silence", by="s1"),), (wire.Mute(kind="quiet_hours", by="night"),)])
_CARE = some.sampled_from([None, wire.Acknowledgement(by="ann", at=START), wire.Acknowledgement(by="bo", at=START)])
_ACTS = some.lists(
    some.sampled_from([wire.Act(act=name, at=START, node="n", ok=True) for name in ("stacks", "hook")]), max_size=2
)
_VERDICTS: tuple[wire.AlertVerdict, ...] = ("avoided", "false")
_OUTCOMES = some.sampled_from([None, *(wire.Outcome(verdict=one, at=START) for one in _VERDICTS)])
_CHANGES = some.builds(
    transition,
    at=some.just(START),
    state=some.sampled_from(["firing", "resolved"]),
    change=some.sampled_from(get_args(wire.TransitionChange)),
    severity=some.sampled_from(["warning", "info"]),
    value=some.sampled_from([0.9, 0.95]),
    muted=_MUTES,
    acknowledged=_CARE,
    acts=some.builds(tuple, _ACTS),
    outcome=_OUTCOMES,
)
_STORIES = some.lists(_CHANGES, min_size=1, max_size=12).map(
    lambda told: [replace(one, id="a", at=START + number) for number, one in enumerate(told)]
)


@given(_STORIES)
def test_a_channel_and_the_page_make_the_same_of_a_story(story: list[wire.Transition]) -> None:
    member = Member()
    for one in story:
        member.take(one, one.at, Ways(), 0.0)
    alert = alert_of(story)
    assert alert is not None
    assert member.latest is not None
    assert replace(alert, fired_at=None, told_at=None, ended_at=None) == alert_view(member.latest, fired_at=None)


SILENCE = (wire.Mute(kind="silence", by="s1"),)
FIRED = transition()


@pytest.mark.parametrize(
    ("story", "told_at"),
    [
        ([FIRED], START + 30),
        ([FIRED, replace(FIRED, change="muted", at=START + 40, muted=SILENCE)], START + 30),
        ([FIRED, replace(FIRED, change="severity", at=START + 40, lowered_from="critical")], START + 30),
        ([replace(FIRED, muted=SILENCE)], None),
        ([replace(FIRED, muted=SILENCE), replace(FIRED, change="muted", at=START + 40)], START + 40),
        ([replace(FIRED, muted=SILENCE), replace(FIRED, state="resolved", at=START + 40)], None),
        ([replace(FIRED, quiet=True), replace(FIRED, change="acts", at=START + 40)], None),
        ([replace(FIRED, quiet=True), replace(FIRED, change="severity", at=START + 40)], START + 40),
    ],
)
def test_an_alert_knows_since_when_people_are_told_of_it(story: list[wire.Transition], told_at: float | None) -> None:
    alert = alert_of(story)
    assert alert is not None
    assert alert.told_at == told_at
