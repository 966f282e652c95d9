"""What one channel is told, when, and in which messages: the pool driven through stories."""

from typing import Any

import msgspec
import pytest
from tests.server.notify_samples import START, transition
from tests.server.pool_story import MARIA, MINUTE, SILENCE, ChannelStory, changes, ends, fires

from oomwatch import wire
from oomwatch.notify import pool as pool_module
from oomwatch.notify.route import Escalation, Route
from oomwatch.units import Duration

LOWERED: dict[str, Any] = {"severity": "info", "lowered_from": "warning"}


# ---------------------------------------------------------------- groups


def test_sixty_four_gpus_of_a_run_are_one_message_whatever_their_node() -> None:
    story = ChannelStory()
    story.hear(0, *(transition(gpu, node=f"gpu-{node:02}") for node in range(8) for gpu in range(8)))
    (notice,) = story.say(0.25)
    assert len(notice.news) == 64
    assert notice.labels == {"alert": "gpu_memory_high", "severity": "warning", "run": "qwen7b"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (transition(run=None, node="gpu-07"), transition(run=None, node="gpu-08")),
        (transition(run="one"), transition(run="two")),
        (transition(run="one"), transition(run=None)),
        (transition(alert="gpu_memory_high"), transition(alert="host_memory_high")),
        (transition(severity="warning"), transition(severity="critical")),
        (transition(simulated=True), transition(simulated=False)),
    ],
    ids=["nodes without a run", "runs", "run and none", "alerts", "severities", "demo and real"],
)
def test_different_matters_are_different_messages(first: wire.Transition, second: wire.Transition) -> None:
    second = msgspec.structs.replace(second, id="second")
    story = ChannelStory()
    story.hear(0, first, second)
    assert [len(notice.news) for notice in story.say(1)] == [1, 1]


def test_gpus_are_in_the_order_of_their_numbers() -> None:
    story = ChannelStory()
    story.hear(0, *(fires(gpu) for gpu in (10, 9, 0, 2)))
    assert story.said(1) == ["firing 0 2 9 10"]


def test_a_route_says_by_what_alerts_are_grouped() -> None:
    story = ChannelStory(route=Route(group_by=("node",)))
    story.hear(0, fires(0, run="one"), fires(1, run="two"))
    (notice,) = story.say(1)
    assert (notice.labels, len(notice.news)) == ({"node": "gpu-07"}, 2)


def test_a_channel_is_not_told_of_what_is_less_grave_than_it_wants() -> None:
    story = ChannelStory(severity="critical")
    story.hear(0, fires(0))
    assert story.pool.next_at() is None


def test_pending_is_never_told() -> None:
    story = ChannelStory()
    story.hear(0, transition(state="pending"))
    assert story.pool.next_at() is None


# ---------------------------------------------------------------- timing


def test_the_first_message_waits_for_company() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.hear(0.2, fires(1))
    assert story.said(0.2) == []
    assert story.silent_until(0.25)
    assert story.said(0.25) == ["firing 0 1"]
    assert story.pool.next_at() is None


def test_later_news_of_a_group_keeps_the_interval() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, fires(1))
    story.hear(20, fires(2))
    assert story.said(30.9) == []
    assert story.said(31) == ["firing 1 2"]


def test_another_group_does_not_wait_for_the_interval_of_the_first() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, fires(0, run="other", id="other"))
    assert story.said(2.25) == ["firing 0"]


def test_a_group_that_was_quiet_for_long_waits_only_for_company_again() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.said(1)
    story.hear(500, fires(1))
    assert story.silent_until(500.25)


def test_the_gravest_is_said_first() -> None:
    story = ChannelStory()
    for severity in wire.SEVERITIES:
        story.hear(0, transition(0, severity=severity))
    assert [notice.severity for notice in story.say(1)] == ["critical", "warning", "info"]


def test_while_a_message_is_on_its_way_its_groups_news_gather_and_others_go_on() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    held = story.take(1)
    story.hear(2, fires(1), ends(fires(0), 2), fires(7, run="other", id="other"))
    assert story.said(100) == ["firing 7"]
    assert story.pool.next_at() is None
    story.arrive(held)
    assert story.said(100) == ["firing 1", "resolved 0"]


def test_where_many_groups_are_due_several_have_their_say_the_gravest_first() -> None:
    story = ChannelStory()
    for number, severity in enumerate(wire.SEVERITIES):
        story.hear(0, transition(0, severity=severity, run=f"run{number}"))
    drafts = story.pool.take(START + 1, START + 1, groups=2)
    assert [draft.notice.severity for draft in drafts] == ["critical", "warning"]
    assert [notice.severity for notice in story.say(1)] == ["info"]


def test_a_full_pool_drops_new_alerts_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "ALERTS_MAX", 3)
    story = ChannelStory()
    story.hear(0, *(fires(gpu) for gpu in range(5)), ends(fires(4), 0), ends(fires(0), 0))
    assert story.pool.dropped_total == 2
    assert story.said(1) == ["firing 1 2", "resolved 0"]


def test_incidents_that_are_over_make_room_for_new_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "ALERTS_MAX", 2)
    story = ChannelStory(edits=True)
    story.hear(0, fires(0), fires(1))
    story.say(1)
    story.hear(40, ends(fires(0), 40), ends(fires(1), 40))
    story.say(41)
    story.hear(100, fires(2, 100))
    assert (story.said(101), story.pool.dropped_total) == (["firing 2"], 0)


def test_the_same_transition_is_told_once() -> None:
    story = ChannelStory()
    story.hear(0, fires(0), fires(0))
    assert story.said(1) == ["firing 0"]
    story.hear(40, fires(0))
    assert story.said(100) == []


# ---------------------------------------------------------------- firing and over


def test_what_is_over_is_told_after_what_fires() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, ends(fires(0), 2), fires(1, 2))
    assert story.said(31) == ["firing 1", "resolved 0"]


def test_what_fired_and_ended_before_anyone_was_told_is_told_once() -> None:
    story = ChannelStory()
    story.hear(0, fires(0), ends(fires(0), 0.1))
    (draft,) = story.take(1)
    assert (draft.notice.state, [key[1] for key in draft.covers]) == ("resolved", ["firing", "resolved"])


def test_a_channel_without_resolutions_still_hears_of_what_fired_and_ended() -> None:
    story = ChannelStory(send_resolved=False)
    story.hear(0, fires(0), ends(fires(0), 0.1))
    (notice,) = story.say(1)
    assert (notice.state, notice.news[0].state) == ("firing", "firing")
    story.hear(50, fires(1, 50), ends(fires(1, 50), 51))
    assert story.said(60) == ["firing 1"]


def test_a_channel_without_resolutions_is_not_told_of_ends() -> None:
    story = ChannelStory(send_resolved=False)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, ends(fires(0), 2))
    assert story.pool.next_at() is None


def test_an_incident_lasts_until_all_is_over_and_the_next_is_another() -> None:
    story = ChannelStory()
    story.hear(0, fires(0), fires(1))
    (first,) = story.say(1)
    story.hear(40, ends(fires(0), 40))
    (second,) = story.say(41)
    assert [one.state for one in second.everything] == ["resolved", "firing"]
    story.hear(80, ends(fires(1), 80))
    (third,) = story.say(81)
    again = fires(0, 200, started_at=START + 199, id="again")
    story.hear(200, again)
    (fourth,) = story.say(201)
    assert first.incident == second.incident == third.incident != fourth.incident
    assert [one.id for one in fourth.everything] == ["again"]


def test_an_incident_has_the_same_name_in_every_channel() -> None:
    names = set()
    for edits in (True, False):
        story = ChannelStory(edits=edits)
        story.hear(0, fires(0))
        names.add(story.say(1)[0].incident)
    assert len(names) == 1


# ---------------------------------------------------------------- severity


def test_what_is_lowered_is_no_news_and_what_is_raised_is() -> None:
    story = ChannelStory()
    fired = fires(0)
    story.hear(0, fired)
    story.said(1)
    story.hear(40, changes(fired, "severity", 40, **LOWERED))
    assert story.said(50) == []
    story.hear(60, changes(fired, "severity", 60))
    assert story.said(61) == ["firing 0"]
    story.hear(100, changes(fired, "severity", 100, **LOWERED))
    story.hear(110, ends(changes(fired, "severity", 100, **LOWERED), 110))
    assert story.said(111) == ["resolved 0"]


def test_what_was_lowered_since_it_began_is_told_to_nobody() -> None:
    story = ChannelStory()
    fired = fires(0, quiet=True, **LOWERED)
    story.hear(0, fired, ends(fired, 1))
    assert story.said(100) == []


def test_what_was_lowered_since_it_began_is_told_when_it_is_raised() -> None:
    story = ChannelStory()
    fired = fires(0, quiet=True, **LOWERED)
    story.hear(0, fired)
    story.hear(5, changes(fires(0), "severity", 5))
    assert story.said(6) == ["firing 0"]


# ---------------------------------------------------------------- mutes


def test_what_is_muted_is_told_when_its_mute_ends() -> None:
    story = ChannelStory()
    fired = fires(0, muted=(SILENCE,))
    story.hear(0, fired)
    assert story.said(100) == []
    story.hear(200, changes(fired, "muted", 200, muted=()))
    assert story.silent_until(200.25)
    assert story.said(201) == ["firing 0"]


def test_what_was_muted_all_its_life_is_told_to_nobody() -> None:
    story = ChannelStory()
    fired = fires(0, muted=(SILENCE,))
    story.hear(0, fired)
    story.hear(10, ends(fired, 10))
    assert story.said(100) == []


def test_what_is_muted_before_anyone_was_told_and_ends_so_is_told_to_nobody() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.hear(0.1, changes(fires(0), "muted", 0.1, muted=(SILENCE,)))
    assert story.said(1) == []
    story.hear(10, ends(fires(0, muted=(SILENCE,)), 10))
    assert story.said(100) == []


def test_the_end_of_what_was_told_is_told_though_it_is_muted() -> None:
    story = ChannelStory(repeat_seconds=MINUTE)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, changes(fires(0), "muted", 2, muted=(SILENCE,)))
    assert story.said(200) == []
    story.hear(300, ends(fires(0, muted=(SILENCE,)), 300))
    assert story.said(301) == ["resolved 0"]


def test_what_was_told_and_whose_mute_ends_is_not_told_again_before_its_time() -> None:
    story = ChannelStory(repeat_seconds=10 * MINUTE)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, changes(fires(0), "muted", 2, muted=(SILENCE,)))
    story.hear(60, changes(fires(0), "muted", 60, muted=()))
    assert story.silent_until(601)
    assert story.said(601) == ["repeat 0"]


def test_who_is_muted_is_not_among_everything_until_they_are_told() -> None:
    story = ChannelStory()
    story.hear(0, fires(0), fires(1, muted=(SILENCE,)))
    (notice,) = story.say(1)
    assert [one.labels["gpu"] for one in notice.everything] == ["0"]


# ---------------------------------------------------------------- repeats


def test_a_group_that_fires_still_is_told_again() -> None:
    story = ChannelStory(repeat_seconds=MINUTE)
    story.hear(0, fires(0), fires(1))
    first = story.say(1)
    second = story.say(61)
    third = story.say(121)
    assert [notice.kind for notice in (*first, *second, *third)] == ["firing", "repeat", "repeat"]
    assert len({notice.id for notice in (*first, *second, *third)}) == 3
    assert story.silent_until(181)


def test_what_is_acknowledged_muted_lowered_or_over_is_not_repeated() -> None:
    story = ChannelStory(repeat_seconds=MINUTE)
    story.hear(0, *(fires(gpu) for gpu in range(5)))
    story.said(1)
    story.hear(2, changes(fires(0), "acknowledged", 2, acknowledged=MARIA))
    story.hear(2, changes(fires(1), "muted", 2, muted=(SILENCE,)))
    story.hear(2, changes(fires(2), "severity", 2, **LOWERED))
    story.hear(2, ends(fires(3), 2))
    assert story.said(40) == ["resolved 3"]
    assert story.said(100) == ["repeat 4"]


def test_what_nobody_takes_care_of_any_more_is_repeated_again() -> None:
    story = ChannelStory(repeat_seconds=MINUTE)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, changes(fires(0), "acknowledged", 2, acknowledged=MARIA))
    assert story.pool.next_at() is None
    story.hear(100, changes(fires(0), "acknowledged", 100))
    assert story.said(100) == ["repeat 0"]


def test_news_of_a_group_put_off_its_repeat() -> None:
    story = ChannelStory(repeat_seconds=MINUTE)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(50, fires(1, 50))
    assert story.said(51) == ["firing 1"]
    assert story.silent_until(111)


# ---------------------------------------------------------------- escalation

ESCALATE = Route(channels=(), escalate=Escalation(after=Duration(900), channels=("ops",)))


def test_what_nobody_acknowledges_is_passed_on_after_its_time_and_its_end_is_told() -> None:
    story = ChannelStory(route=ESCALATE)
    story.hear(5, fires(0))
    assert story.silent_until(900.25)
    assert story.said(900) == []
    assert story.said(900.25) == ["escalation 0"]
    story.hear(1000, ends(fires(0), 1000))
    assert story.said(1001) == ["resolved 0"]


def test_what_would_be_passed_on_within_the_interval_goes_along() -> None:
    story = ChannelStory(route=ESCALATE)
    for gpu, at in enumerate((0, 20, 40)):
        story.hear(at, fires(gpu, at))
    assert story.said(901) == ["escalation 0 1"]
    assert story.said(941) == ["escalation 2"]


@pytest.mark.parametrize(
    "care",
    [
        changes(fires(0), "acknowledged", 10, acknowledged=MARIA),
        changes(fires(0), "muted", 10, muted=(SILENCE,)),
        ends(fires(0), 10),
    ],
    ids=["acknowledged", "muted", "over"],
)
def test_what_is_taken_care_of_is_not_passed_on(care: wire.Transition) -> None:
    story = ChannelStory(route=ESCALATE)
    story.hear(0, fires(0))
    story.hear(10, care)
    assert story.pool.next_at() is None


@pytest.mark.parametrize("restarts", [False, True])
def test_what_nobody_takes_care_of_any_more_is_passed_on_at_once(restarts: bool) -> None:
    story = ChannelStory(route=ESCALATE)
    story.hear(0, fires(0))
    story.hear(10, changes(fires(0), "acknowledged", 10, acknowledged=MARIA))
    story.hear(1000, changes(fires(0), "acknowledged", 1000))
    if restarts:
        story.restart(1001)
    assert story.said(1002) == ["escalation 0"]


def test_what_is_no_longer_muted_after_its_time_is_passed_on_at_once() -> None:
    story = ChannelStory(route=ESCALATE)
    story.hear(0, fires(0, muted=(SILENCE,)))
    story.hear(2000, changes(fires(0), "muted", 2000, muted=()))
    assert story.said(2000.25) == ["escalation 0"]


# ---------------------------------------------------------------- updates


def test_a_channel_that_edits_is_sent_what_changes() -> None:
    story = ChannelStory(edits=True)
    fired = fires(0)
    story.hear(0, fired)
    (first,) = story.say(1)
    story.hear(2, changes(fired, "acknowledged", 2, acknowledged=MARIA))
    (update,) = story.say(3)
    assert (update.kind, update.incident, update.news[0].change) == ("update", first.incident, "acknowledged")
    assert update.everything[0].acknowledged == MARIA


def test_a_channel_that_cannot_edit_is_not_sent_what_changes() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.said(1)
    story.hear(2, changes(fires(0), "acknowledged", 2, acknowledged=MARIA))
    assert story.pool.next_at() is None


def test_updates_do_not_hold_up_news() -> None:
    story = ChannelStory(edits=True)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(40, changes(fires(0), "acknowledged", 40, acknowledged=MARIA))
    assert story.said(41) == ["update 0"]
    story.hear(42, fires(1, 42))
    assert story.said(43) == ["firing 1"]


def test_an_edit_goes_along_with_what_is_said_anyhow() -> None:
    story = ChannelStory(edits=True)
    story.hear(0, fires(0))
    story.said(1)
    story.hear(40, changes(fires(0), "acknowledged", 40, acknowledged=MARIA), fires(1, 40))
    assert story.said(41) == ["firing 1"]
    assert story.pool.next_at() is None


def test_that_it_is_muted_is_edited_once_and_nothing_more_until_it_is_not() -> None:
    story = ChannelStory(edits=True)
    fired, muted = fires(0), fires(0, muted=(SILENCE,))
    story.hear(0, fired)
    story.said(1)
    story.hear(2, changes(muted, "muted", 2))
    assert story.said(3) == ["update 0"]
    story.hear(4, changes(muted, "severity", 4, **LOWERED))
    assert story.said(40) == []
    story.hear(50, changes(fired, "muted", 50))
    assert story.said(51) == ["update 0 0"]


def test_a_verdict_is_edited_into_an_incident_that_is_over() -> None:
    story = ChannelStory(edits=True)
    fired, ended = fires(0), ends(fires(0), 40)
    story.hear(0, fired)
    (first,) = story.say(1)
    story.hear(40, ended)
    story.said(41)
    verdict = wire.Outcome(verdict="avoided", at=START + 500)
    story.hear(500, changes(ended, "outcome", 500, outcome=verdict))
    (update,) = story.say(501)
    assert (update.kind, update.state, update.incident) == ("update", "resolved", first.incident)
    assert (update.everything[0].outcome, update.everything[0].at) == (verdict, ended.at)


# ---------------------------------------------------------------- restarts


def test_after_a_restart_nothing_is_told_twice_and_the_rest_is() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    (first,) = story.say(1)
    story.hear(10, ends(fires(0), 10), fires(1, 10))
    story.restart(12)
    assert story.silent_until(31)
    again, over = story.say(31)
    assert (again.kind, over.kind, {again.incident, over.incident}) == ("firing", "resolved", {first.incident})


def test_repeats_and_escalations_keep_their_time_over_a_restart() -> None:
    story = ChannelStory(repeat_seconds=MINUTE)
    story.hear(0, fires(0))
    story.said(1)
    story.restart(40)
    assert story.silent_until(61)
    late = ChannelStory(route=ESCALATE)
    late.hear(0, fires(0))
    late.restart(800)
    assert late.silent_until(900.25)


def test_a_message_on_its_way_holds_its_group_over_a_restart() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.take(1)
    story.hear(5, fires(1, 5))
    story.restart(100, waiting=story.letters)
    assert story.said(200) == []
    story.pool.settle(story.letters[0].incident)
    assert story.said(200) == ["firing 1"]


def test_mutes_are_remembered_over_a_restart() -> None:
    story = ChannelStory()
    story.hear(0, fires(0, muted=(SILENCE,)))
    story.restart(10)
    assert story.pool.next_at() is None
    story.hear(20, changes(fires(0), "muted", 20, muted=()))
    assert story.said(21) == ["firing 0"]


def test_a_channel_is_not_told_of_what_was_over_before_it_was_there_or_for_an_hour() -> None:
    story = ChannelStory()
    story.hear(0, fires(0), fires(1), ends(fires(1), 100), fires(2), ends(fires(2), 200))
    story.restart(300, known_since=150)
    assert story.said(301) == ["firing 0", "resolved 2"]
    old = ChannelStory()
    old.hear(0, fires(1), ends(fires(1), 100))
    old.restart(100 + 61 * MINUTE, known_since=-1000)
    assert old.pool.next_at() is None


def test_what_older_versions_told_counts_as_told() -> None:
    story = ChannelStory()
    story.hear(0, fires(0))
    story.said(1)
    story.told, story.letters = dict.fromkeys(story.told), []
    story.restart(50)
    assert story.pool.next_at() is None
    story.hear(60, ends(fires(0), 60))
    assert story.said(61) == ["resolved 0"]


def test_what_was_told_and_is_out_of_sight_is_in_everything_still() -> None:
    story = ChannelStory()
    story.hear(0, fires(0), fires(1))
    story.said(1)
    story.hear(40, ends(fires(0), 40))
    story.said(41)
    story.heard = [one for one in story.heard if one.id != fires(0).id]  # too long ago for the store to give
    story.restart(100)
    story.hear(110, fires(2, 110))
    (notice,) = story.say(111)
    assert [(one.labels["gpu"], one.state) for one in notice.everything] == [
        ("0", "resolved"), ("1", "firing"), ("2", "firing"),
    ]  # fmt: skip


# ---------------------------------------------------------------- long lives


def test_what_flaps_beside_what_stays_does_not_fill_the_memory() -> None:
    story = ChannelStory(edits=True)
    story.hear(0, fires(7))
    story.say(1)
    for turn in range(50):
        at = 100.0 * (turn + 1)
        one = fires(0, at, id=f"turn {turn}", started_at=START + at)
        story.hear(at, one)
        story.hear(at + 10, ends(one, at + 10))
        (told,) = story.say(at + 20)
        assert [alert.labels["gpu"] for alert in told.everything] == ["0", "7"]
    story.hear(9000, ends(fires(7), 9000))
    (last,) = story.say(9001)
    assert [(alert.id, alert.state) for alert in last.everything] == [
        ("turn 49", "resolved"),
        (fires(7).id, "resolved"),
    ]


@pytest.mark.parametrize("edits", [True, False])
def test_what_began_with_an_incident_and_fires_when_that_is_over_is_another(edits: bool) -> None:
    story = ChannelStory(edits=edits)
    incidents = []
    for gpu, at in [(0, 0.0), (1, 100.0), (2, 1000.0)]:
        fired = fires(gpu, at)  # all began at START
        story.hear(at, fired)
        story.hear(at + 50, ends(fired, at + 50))
        incidents += [notice.incident for notice in story.say(at + 60)]
    assert len(set(incidents)) == 3


def test_an_incident_that_new_routes_have_parted_ends_in_each_of_its_parts() -> None:
    story = ChannelStory(edits=True)
    one, two = (transition(gpu, node=node, started_at=START) for gpu, node in enumerate("ab"))
    story.hear(0, one, two)
    (told,) = story.say(1)
    story.reroute(Route(group_by=("node",)))
    story.restart(2)
    story.hear(100, ends(one, 100))
    story.say(101)
    story.hear(200, ends(two, 200))
    story.say(201)
    later = transition(2, node="b", at=START + 300, started_at=START + 300)
    story.hear(300, later)
    (another,) = story.say(301)
    assert another.incident != told.incident
