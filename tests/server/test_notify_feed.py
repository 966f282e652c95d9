"""What is told when to receivers that keep their own account, such as Alertmanager, and what its failures mean."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from tests.server.notify_samples import START, transition
from tests.server.receiver import Answer, Receiver, receiving

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.channel import Item, Surroundings
from oomwatch.notify.channels.alertmanager import AlertmanagerChannel, posted
from oomwatch.notify.feed import (
    AHEAD_SECONDS,
    BATCH,
    ENDED_SECONDS,
    RESEND_SECONDS,
    WATCHDOG,
    Feeder,
    ToldSoFar,
    united,
)
from oomwatch.notify.outcome import Failed
from oomwatch.notify.rate import parse_rate
from oomwatch.notify.route import Target, Timing
from oomwatch.notify.secret import Secret
from oomwatch.notify.selection import is_meant
from oomwatch.notify.trial import send_test
from oomwatch.notify.words import Frame
from oomwatch.options import SettingError
from oomwatch.story import alert_view

MUTE = wire.Mute(kind="silence", by="s1")


def alert(gpu: int = 0, **changes: Any) -> wire.Alert:
    """A GPU's alert that has fired 30 s after START, and people were told of it."""
    told: dict[str, Any] = {"told_at": START + 30} | changes
    return msgspec.structs.replace(alert_view(transition(gpu), fired_at=START + 30), **told)


def withheld(gpu: int = 0, **changes: Any) -> wire.Alert:
    return alert(gpu, told_at=None, **changes)


def ended(one: wire.Alert, at: float) -> wire.Alert:
    return msgspec.structs.replace(one, state="resolved", ended_at=at, fired_at=one.fired_at)


class Story:
    """One receiver's account over time; both clocks go alike."""

    def __init__(self) -> None:
        self._told = ToldSoFar()

    def at(self, seconds: float, *alerts: wire.Alert, watchdog: bool = False) -> dict[str, float]:
        """Who is told, and for how long from now it fires (negative: it is over)."""
        now = START + seconds
        due = self._told.due(alerts, now, seconds, watchdog=watchdog)
        self._told.note(due, now, seconds)
        return {key: item.ends_at - now for key, item in due.items()}


def test_what_fires_is_told_at_once_and_again_each_minute_four_minutes_ahead() -> None:
    story, one = Story(), alert()
    assert story.at(30, one) == {one.id: AHEAD_SECONDS}
    assert story.at(31, one) == {}
    assert story.at(89, one) == {}
    assert story.at(30 + RESEND_SECONDS, one) == {one.id: AHEAD_SECONDS}


def test_what_is_over_is_told_at_once_and_again_for_five_minutes() -> None:
    story, one = Story(), alert()
    story.at(30, one)
    over = ended(one, START + 100)
    assert story.at(100, over) == {one.id: 0.0}
    assert story.at(130, over) == {}
    assert story.at(160, over) == {one.id: -60.0}
    assert story.at(100 + ENDED_SECONDS + 1, over) == {}


def test_what_fires_anew_under_the_same_id_is_told_at_once() -> None:
    story, one = Story(), alert()
    story.at(30, one)
    story.at(40, ended(one, START + 40))
    assert story.at(41, one) == {one.id: AHEAD_SECONDS}


def test_muting_withholds_a_beginning_and_nothing_of_what_was_told() -> None:
    story, told, untold = Story(), alert(0), withheld(1, muted=(MUTE,))
    assert set(story.at(30, told, untold)) == {told.id}
    muted = msgspec.structs.replace(told, muted=(MUTE,))
    assert set(story.at(90, muted, untold)) == {told.id}
    assert set(story.at(100, ended(muted, START + 100), ended(untold, START + 100))) == {told.id}


def test_what_fires_still_when_its_mute_ends_is_told_then() -> None:
    story, muted = Story(), withheld(muted=(MUTE,))
    assert story.at(30, muted) == {}
    assert set(story.at(60, alert())) == {muted.id}


def test_what_was_lowered_before_it_was_told_is_told_to_nobody_until_it_is_raised() -> None:
    story = Story()
    lowered = withheld(severity="info", lowered_from="warning")
    assert story.at(30, lowered) == {}
    assert set(story.at(60, alert())) == {lowered.id}
    assert set(story.at(120, alert(severity="info", lowered_from="warning"))) == {lowered.id}


def test_pending_alerts_are_told_to_nobody() -> None:
    assert Story().at(10, withheld(state="pending", fired_at=None)) == {}


@pytest.mark.parametrize("change", [{"muted": (MUTE,)}, {"severity": "info", "lowered_from": "warning"}])
def test_after_a_restart_what_was_told_and_is_muted_or_lowered_by_now_goes_on(change: dict[str, Any]) -> None:
    one = alert(**change)
    assert Story().at(90, one) == {one.id: AHEAD_SECONDS}
    assert Story().at(130, ended(one, START + 100)) == {one.id: -30.0}


def test_after_a_restart_what_ended_lately_is_told_too() -> None:
    one = ended(alert(), START + 100)
    assert Story().at(130, one) == {one.id: -30.0}
    assert Story().at(100 + ENDED_SECONDS + 1, one) == {}


def test_what_is_no_longer_to_be_seen_is_over() -> None:
    """More alerts may end at once than the board keeps of those that ended."""
    story, one = Story(), alert()
    story.at(30, one)
    assert story.at(40) == {one.id: 0.0}
    assert story.at(41) == {}


def test_the_watchdog_fires_while_all_is_well() -> None:
    story = Story()
    assert story.at(0, watchdog=True) == {WATCHDOG: AHEAD_SECONDS}
    assert story.at(30, watchdog=True) == {}
    assert story.at(60, watchdog=False) == {}
    assert story.at(61, watchdog=True) == {WATCHDOG: AHEAD_SECONDS}


# ---------------------------------------------------------------- what an alert looks like


def test_an_alert_is_told_by_its_labels_with_figures_as_annotations() -> None:
    now = START + 100
    body = msgspec.json.decode(msgspec.json.encode(posted(Item(alert(3), now + 240), now, Frame())))
    assert body["labels"] == {
        "alertname": "gpu_memory_high", "severity": "warning", "node": "gpu-07", "gpu": "3", "run": "qwen7b"
    }  # fmt: skip
    assert body["annotations"]["summary"] == "GPU 3 of gpu-07 is nearly full"
    assert body["annotations"]["value"] == "0.9"
    assert (body["startsAt"], body["endsAt"]) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:19:00.000Z")
    assert body["generatorURL"] == ""


def test_labels_stay_the_same_whatever_becomes_of_the_figures() -> None:
    bodies = [posted(Item(alert(3, value=value), START), START, Frame()) for value in (0.9, 0.97)]
    assert bodies[0].labels == bodies[1].labels
    lowered = alert(3, severity="info", lowered_from="warning")
    assert posted(Item(lowered, START), START, Frame()).labels == bodies[0].labels


def test_simulated_alerts_can_be_routed_apart() -> None:
    body = posted(Item(alert(3, simulated=True), START), START, Frame())
    assert body.labels["simulated"] == "true"
    assert body.annotations["summary"].startswith("DEMO")


def test_the_watchdog_has_the_name_that_everybody_gives_it() -> None:
    body = posted(Item(None, START + 240), START, Frame(external_url="https://oom.example"))
    assert body.labels == {"alertname": "Watchdog", "severity": "none"}


# ---------------------------------------------------------------- one receiver


def settled(ready: Callable[[Sequence[Feeder]], bool]) -> Callable[[Sequence[Feeder]], Awaitable[None]]:
    async def check(feeders: Sequence[Feeder]) -> None:
        while not ready(feeders):  # noqa: ASYNC110
            await asyncio.sleep(0.005)  # between two looks at what has no event of its own

    return check


DELIVERED = settled(lambda feeders: bool(feeders[0].state.delivered_total))


class World:
    """Feeders of one section, against receivers on loopback."""

    def __init__(self, alerts: Sequence[wire.Alert]) -> None:
        self.alerts = list(alerts)
        self.is_well = True
        self.now = START + 30

    async def run(
        self, section: AlertmanagerChannel, check: Callable[[Sequence[Feeder]], Awaitable[None]]
    ) -> list[wire.ChannelState]:
        async with http.client() as client:
            feed = section.open(Surroundings(Frame(), client, {}))
            feeders = [
                Feeder(feed, address, lambda: self.alerts, lambda: self.is_well, clock=lambda: self.now,
                       chance=lambda: 0.0)
                for address in feed.addresses
            ]  # fmt: skip
            tasks = [asyncio.create_task(feeder.run()) for feeder in feeders]
            try:
                await asyncio.wait_for(check(feeders), 10)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return [feeder.state for feeder in feeders]


def section(*urls: str, **settings: Any) -> AlertmanagerChannel:
    settings.setdefault("watchdog", False)
    return AlertmanagerChannel(name="am", url=Secret(" ".join(urls)), **settings)


@contextlib.contextmanager
def two() -> Iterator[tuple[Receiver, Receiver]]:
    with receiving() as one, receiving() as other:
        yield one, other


def test_each_receiver_of_a_cluster_is_told() -> None:
    with two() as (one, other):
        world = World([alert(0), alert(1)])
        states = asyncio.run(
            world.run(section(one.url, other.url), settled(lambda all_: all(one.state.delivered_total for one in all_)))
        )
        requests = [*one.received, *other.received]
    assert [request.path for request in requests] == ["/api/v2/alerts"] * 2
    assert [len(request.json()) for request in requests] == [2, 2]
    assert united(states).delivered_total == 2


def test_a_receiver_that_is_down_delays_no_other_and_the_channel_is_well() -> None:
    with two() as (one, other):
        one.always(Answer(503))
        world = World([alert()])
        states = asyncio.run(
            world.run(
                section(one.url, other.url),
                settled(lambda all_: bool(all_[0].state.retries_total and all_[1].state.delivered_total)),
            )
        )
    whole = united(states)
    assert (whole.health, whole.delivered_total) == ("ok", 1)
    assert whole.last_error is not None
    assert "503" in whole.last_error


def test_what_was_not_taken_is_told_again() -> None:
    with receiving() as receiver:
        receiver.answer(Answer(500))
        world = World([alert()])
        [state] = asyncio.run(world.run(section(receiver.url), DELIVERED))
        assert [len(one.json()) for one in receiver.received] == [1, 1]
    assert (state.health, state.retries_total) == ("ok", 1)


def test_a_refusal_marks_the_channel_and_the_rest_is_told_all_the_same() -> None:
    with receiving() as receiver:
        receiver.answer(Answer(400, body=b"invalid label set"))
        world = World([alert(gpu) for gpu in range(BATCH + 1)])
        [state] = asyncio.run(world.run(section(receiver.url), DELIVERED))
        assert [len(one.json()) for one in receiver.received] == [BATCH, 1]
    assert (state.health, state.failed_total, state.waiting) == ("failed", 1, 0)
    assert state.last_error is not None
    assert "invalid label set" in state.last_error


def test_ten_thousand_alerts_go_out_in_batches() -> None:
    with receiving() as receiver:
        world = World([alert(gpu) for gpu in range(10_000)])
        asyncio.run(world.run(section(receiver.url), settled(lambda all_: all_[0].state.delivered_total >= 40)))
        sizes = [len(one.json()) for one in receiver.received]
    assert sum(sizes) == 10_000
    assert max(sizes) == BATCH


def test_news_is_told_at_once() -> None:
    with receiving() as receiver:
        world = World([alert(0)])

        async def check(feeders: Sequence[Feeder]) -> None:
            await settled(lambda all_: all_[0].state.delivered_total == 1)(feeders)
            world.alerts.append(alert(1))
            feeders[0].wake()
            await settled(lambda all_: all_[0].state.delivered_total == 2)(feeders)

        asyncio.run(world.run(section(receiver.url), check))
        assert [one["labels"]["gpu"] for one in receiver.received[1].json()] == ["1"]


def test_while_the_server_is_not_well_the_watchdog_is_silent() -> None:
    with receiving() as receiver:
        world = World([alert()])
        world.is_well = False
        asyncio.run(world.run(section(receiver.url, watchdog=True), DELIVERED))
        names = [one["labels"]["alertname"] for request in receiver.received for one in request.json()]
    assert names == ["gpu_memory_high"]


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({"username": "oom", "password": Secret("watch")}, "Basic b29tOndhdGNo"),
        ({"token": Secret("abc")}, "Bearer abc"),
        ({}, None),
    ],
)
def test_receivers_are_told_who_we_are(settings: dict[str, Any], header: str | None) -> None:
    with receiving() as receiver:
        asyncio.run(send_test(section(receiver.url + "/am/", **settings), "en"))
        [request] = receiver.received
    assert request.headers.get("authorization") == header
    assert request.path == "/am/api/v2/alerts"


def test_a_test_alert_ends_by_itself_and_a_refusal_is_told() -> None:
    with receiving() as receiver:
        asyncio.run(send_test(section(receiver.url), "en"))
        [one] = receiver.received[0].json()
        receiver.always(Answer(401, body=b"who are you"))
        outcome = asyncio.run(send_test(section(receiver.url), "en"))
    assert one["labels"] == {"alertname": "oomwatch_test", "severity": "info"}
    assert isinstance(outcome, Failed)
    assert "who are you" in outcome.reason


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"username": "a"}, "belong together"),
        ({"password": Secret("a")}, "belong together"),
        ({"username": "a", "password": Secret("a"), "token": Secret("b")}, "not both"),
        ({"token": Secret("a"), "token_env": "B"}, "by one of itself"),
        ({"send_resolved": False}, "leave out rate and send_resolved"),
        ({"rate": parse_rate("30/1m")}, "leave out rate and send_resolved"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        section("http://a", **settings)


def test_one_wrong_address_among_several_is_a_mistake_that_is_not_shown() -> None:
    async def go() -> None:
        async with http.client() as client:
            section("http://a", "canary").open(Surroundings(Frame(), client, {}))

    with pytest.raises(SettingError) as caught:
        asyncio.run(go())
    assert "canary" not in str(caught.value)


# ---------------------------------------------------------------- whom an alert is meant for

NOW = START + 1000
TIMING = Timing(0.05, 30.0, 14400.0)
DIRECT = Target("am", "", None, TIMING)
LATE = Target("am", "", None, TIMING, escalate_after=600.0)


@pytest.mark.parametrize(
    ("one", "target", "meant"),
    [
        (alert(), DIRECT, True),
        (alert(), None, False),
        (alert(severity="info"), DIRECT, False),
        (alert(severity="info", lowered_from="warning"), DIRECT, True),
        (alert(), LATE, True),
        (alert(fired_at=NOW - 599), LATE, False),
        (alert(acknowledged=wire.Acknowledgement(by="ann", at=START + 600)), LATE, False),
        (alert(acknowledged=wire.Acknowledgement(by="ann", at=START + 700)), LATE, True),
        (alert(fired_at=None, state="pending"), LATE, False),
    ],
)
def test_an_alert_is_meant_for_whom_its_severity_and_routes_say(
    one: wire.Alert, target: Target | None, meant: bool
) -> None:
    assert is_meant(one, target, section("http://a"), NOW) is meant
