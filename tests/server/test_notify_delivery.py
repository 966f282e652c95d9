"""Everything that is meant for a channel reaches it, and is known by one id: real receivers, notifier and database."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.server.notify_world import (
    DEADLINE_SECONDS,
    BreakableLedger,
    gpus_of,
    half_a_second_and_more,
    ids_of,
    notifying,
    recent,
    slack,
    until,
    webhook,
)
from tests.server.receiver import Answer, Receiver, receiving

from oomwatch import wire
from oomwatch.letters import Letter, Standing, key_of
from oomwatch.notify import courier
from oomwatch.notify.channel import ChannelSection
from oomwatch.notify.inbox import ARRIVALS_MAX, Inbox
from oomwatch.notify.notice import Notice
from oomwatch.notify.outbox import mail_again
from oomwatch.notify.outcome import Delivered, Outcome, TryAgain
from oomwatch.notify.rate import parse_rate
from oomwatch.notify.route import Escalation, Route, Router, Timing
from oomwatch.notify.secret import Secret
from oomwatch.store.store import Store
from oomwatch.story import alert_view
from oomwatch.units import Duration

KEY = "a" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    yield opened
    opened.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


@pytest.fixture
def another() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


def over(fired: wire.Transition) -> wire.Transition:
    return msgspec.structs.replace(fired, state="resolved", at=time.time(), reason="recovered")


# ---------------------------------------------------------------- the usual


def test_eight_gpus_reach_slack_and_webhook_as_one_message_each(
    store: Store, receiver: Receiver, another: Receiver
) -> None:
    gpus = [recent(gpu) for gpu in range(8)]

    async def story() -> None:
        async with notifying(store, slack(receiver), webhook(another)) as world:
            await world.happens(*gpus)
            await until(lambda: all(one.delivered_total == 1 for one in world.notifier.status()))
            await world.nothing_waits()
            for state in world.notifier.status():
                assert (state.health, state.failed_total, state.last_error) == ("ok", 0, None)
                assert state.last_success_at == pytest.approx(time.time(), abs=DEADLINE_SECONDS)

    asyncio.run(story())
    [to_slack], [to_webhook] = receiver.received, another.received
    assert "8 GPUs of gpu-07" in to_slack.json()["text"]
    assert gpus_of(to_webhook) == [str(gpu) for gpu in range(8)]
    told = store.deliveries_of(gpus[3].id)
    assert sorted((one.channel, one.kind, one.state, one.attempts) for one in told) == [
        ("ops", "firing", "delivered", 1),
        ("team", "firing", "delivered", 1),
    ]
    assert to_webhook.headers["webhook-id"] in [one.id for one in told]


def test_what_is_told_again_has_the_figures_of_now_and_not_those_of_when_it_fired(
    store: Store, receiver: Receiver
) -> None:
    fired = recent(0, value=0.9)
    board: list[wire.Alert] = []

    def told() -> list[dict[str, str]]:
        return [request.json()["alerts"][0]["annotations"] for request in receiver.received]

    async def story() -> None:
        async with notifying(store, webhook(receiver), repeat_interval=Duration(0.1), board=lambda: board) as world:
            await world.happens(fired)
            await until(lambda: bool(told()))
            words = {"en": wire.AlertText(summary="97 %", description="")}
            board.append(alert_view(msgspec.structs.replace(fired, value=0.97, texts=words), fired_at=fired.at))
            await until(lambda: told()[-1]["value"] == "0.97")

    asyncio.run(story())
    assert told()[0]["value"] == "0.9"
    assert told()[-1]["summary"] == "97 %"


def test_firing_repeat_and_resolved_are_one_incident_in_turn(store: Store, receiver: Receiver) -> None:
    fired = recent()

    async def story() -> None:
        async with notifying(store, webhook(receiver), repeat_interval=Duration(0.1)) as world:
            await world.happens(fired)
            await until(lambda: len(receiver.received) >= 2)
            await world.happens(over(fired))
            await until(lambda: receiver.received[-1].json()["status"] == "resolved")
            await world.nothing_waits()

    asyncio.run(story())
    told = store.deliveries_of(fired.id)
    assert [one.kind for one in told] == ["firing", *["repeat"] * (len(told) - 2), "resolved"]
    assert len(told) == len(receiver.received) == len(set(ids_of(receiver)))


def test_changes_of_a_group_keep_the_interval(store: Store, receiver: Receiver) -> None:
    async def story() -> None:
        async with notifying(store, webhook(receiver), group_interval=Duration(0.6)) as world:
            await world.happens(recent(0))
            await until(lambda: len(receiver.received) == 1)
            for gpu in (1, 2, 3):
                await world.happens(recent(gpu))
            await until(lambda: len(receiver.received) == 2)

    asyncio.run(story())
    first, second = receiver.received
    assert gpus_of(second) == ["1", "2", "3"]
    assert second.at - first.at > 0.5


def test_what_nobody_cares_for_is_told_the_boss(store: Store, receiver: Receiver, another: Receiver) -> None:
    escalate = Escalation(after=Duration(0.3), channels=("boss",))
    route = Route(channels=("ops",), escalate=escalate)
    first, second = (recent(0, run=run, ago=0.0) for run in ("a", "b"))
    care = wire.Acknowledgement(by="maria", at=time.time())
    mine = msgspec.structs.replace(first, change="acknowledged", acknowledged=care)

    async def story() -> None:
        async with notifying(store, webhook(receiver), webhook(another, "boss"), route=route) as world:
            await world.happens(first, second, mine)
            await until(lambda: len(receiver.received) == 2 and len(another.received) == 1)
            await world.nothing_waits()

    asyncio.run(story())
    assert [request.json()["groupLabels"]["run"] for request in another.received] == ["b"]


def test_slack_is_sent_at_most_one_message_a_second(store: Store, receiver: Receiver) -> None:
    async def story() -> None:
        async with notifying(store, slack(receiver)) as world:
            await world.happens(recent(run="one"), recent(run="two"))
            await until(lambda: len(receiver.received) == 2)

    asyncio.run(story())
    first, second = receiver.received
    assert second.at - first.at >= 0.95


def test_a_channel_is_sent_no_more_than_its_rate(store: Store, receiver: Receiver) -> None:
    async def story() -> None:
        async with notifying(store, webhook(receiver, rate=parse_rate("2/1s"))) as world:
            await world.happens(*(recent(0, run=f"run{number}") for number in range(4)))
            await until(lambda: len(receiver.received) == 4)

    asyncio.run(story())
    first, _, third, fourth = [request.at for request in receiver.received]
    assert third - first >= 0.45
    assert fourth - first >= 0.95


class CountingLedger(BreakableLedger):
    """Counts the transactions."""

    transactions = 0

    def keep_letters(self, letters: Sequence[Letter], standings: Sequence[Standing] = ()) -> None:
        self.transactions += 1
        super().keep_letters(letters, standings)


def test_signed_webhooks_carry_a_signature(store: Store, receiver: Receiver) -> None:
    async def story() -> None:
        async with notifying(store, webhook(receiver, secret=Secret(KEY))) as world:
            await world.happens(recent())
            await until(lambda: world.status().delivered_total == 1)

    asyncio.run(story())
    [request] = receiver.received
    assert request.headers["webhook-id"].startswith("msg_")
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    assert request.headers["webhook-signature"].startswith("v1,")


class Board(ChannelSection, frozen=True, kw_only=True, tag="board"):
    pass


class EditedBoard:
    """A channel that can change what it said, and keeps what it was given."""

    pause_seconds = 0.0
    edits = True

    def __init__(self) -> None:
        self.config = Board(name="board")
        self.given: list[Notice] = []
        self.lost: set[str] = set()  # receipts of what somebody has deleted

    async def send(self, notice: Notice) -> Outcome:
        """A receipt for what is new, and for what had to be made anew."""
        self.given.append(notice)
        is_new = notice.receipt is None or notice.receipt in self.lost
        return Delivered(receipt=f"receipt {len(self.given)}" if is_new else None)


def test_messages_of_many_groups_share_their_transactions(store: Store) -> None:
    ledger, groups, board = CountingLedger(store), 3 * courier.MAILS_AT_ONCE, EditedBoard()
    fired = [recent(0, run=f"run{number}") for number in range(groups)]

    async def story() -> None:
        async with notifying(store, others=[board], ledger=ledger) as world:
            await world.happens(*fired)
            await until(lambda: len(board.given) == groups)
            await world.nothing_waits()

    asyncio.run(story())
    assert len({notice.id for notice in board.given}) == groups
    assert ledger.transactions <= 10
    states = [one.state for fired_one in fired for one in store.deliveries_of(fired_one.id)]
    assert states == ["delivered"] * groups


class SlowBoard(EditedBoard):
    """It answers only when it is let; one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def send(self, notice: Notice) -> Outcome:
        outcome = await super().send(notice)
        await self.let.wait()
        self.let.clear()
        return outcome


def test_what_a_slow_channel_is_told_is_written_when_its_turn_comes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "AHEAD_SECONDS", 1e-9)  # whatever the channel takes is too long
    fired = [recent(0, run=f"run{number}") for number in range(courier.SENT_AT_ONCE - 1)]

    async def story() -> list[tuple[int, int]]:
        board = SlowBoard()
        seen: list[tuple[int, int]] = []
        async with notifying(store, others=[board]) as world:
            await world.happens(*fired)
            for sent in range(1, len(fired) + 1):
                await until(lambda sent=sent: len(board.given) == sent)  # type: ignore[misc]
                states = [told.state for one in fired for told in store.deliveries_of(one.id)]
                seen.append((len(states), states.count("delivered")))
                board.let.set()
            await world.nothing_waits()
        return seen

    assert asyncio.run(story()) == [(sent, sent - 1) for sent in range(1, len(fired) + 1)]


class KeepingLedger(BreakableLedger):
    """Remembers every message as it was written down first."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.first: dict[str, Letter] = {}

    def keep_letters(self, letters: Sequence[Letter], standings: Sequence[Standing] = ()) -> None:
        self.first = {one.id: one for one in letters} | self.first
        super().keep_letters(letters, standings)


def test_that_a_slow_channel_has_taken_a_message_is_noted_before_it_is_sent_the_next(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = [recent(0, run=f"run{number}") for number in range(courier.SENT_AT_ONCE - 1)]
    ledger, killed = KeepingLedger(store), Store.open(f"sqlite:///{tmp_path}/killed.db")

    async def earlier_life() -> None:
        async with notifying(store, others=[EditedBoard()], ledger=ledger) as world:
            await world.happens(*fired)
            await world.nothing_waits()

    async def story() -> list[int]:
        board, noted = SlowBoard(), []
        async with notifying(killed, others=[board]) as world:
            for sent in range(1, len(fired) + 1):
                await until(lambda sent=sent: len(board.given) == sent)  # type: ignore[misc]
                states = [told.state for one in fired for told in killed.deliveries_of(one.id)]
                noted.append(states.count("delivered"))
                board.let.set()
            await world.nothing_waits()
        return noted

    asyncio.run(earlier_life())
    killed.append(fired)
    killed.keep_letters(list(ledger.first.values()))  # as if it had been killed before any was sent
    monkeypatch.setattr(courier, "AHEAD_SECONDS", 1e-9)
    assert asyncio.run(story()) == list(range(len(fired)))
    killed.close()


class CrowdedBoard(EditedBoard):
    """It answers only once so many messages are on their way to it, and the first of these it cannot take."""

    def __init__(self, crowd: int) -> None:
        super().__init__()
        self._crowd = crowd
        self._is_here = asyncio.Event()

    async def send(self, notice: Notice) -> Outcome:
        self.given.append(notice)
        if len(self.given) == self._crowd:
            self._is_here.set()
        await asyncio.wait_for(self._is_here.wait(), DEADLINE_SECONDS)
        return TryAgain("too many") if len(self.given) == self._crowd else Delivered()


def test_where_very_many_wait_several_go_at_once_and_their_failures_count_as_one(store: Store) -> None:
    failures: list[int] = []

    def patience(row: int) -> float:
        failures.append(row)
        return 0.01

    async def story() -> int:
        board = CrowdedBoard(courier.SENT_AT_ONCE)
        async with notifying(store, others=[board], patience=patience) as world:
            await world.happens(*(recent(0, run=f"run{number}") for number in range(courier.SENT_AT_ONCE)))
            await world.nothing_waits()
        return len({notice.id for notice in board.given})

    assert asyncio.run(story()) == courier.SENT_AT_ONCE
    assert set(failures) == {1}


def test_later_messages_of_an_incident_bring_its_first_receipt_also_after_a_restart(store: Store) -> None:
    fired = recent()
    board = EditedBoard()
    acknowledged = msgspec.structs.replace(fired, change="acknowledged", at=time.time())
    acknowledged = msgspec.structs.replace(acknowledged, acknowledged=wire.Acknowledgement(by="maria", at=1.0))

    async def story() -> None:
        async with notifying(store, others=[board]) as world:
            await world.happens(fired)
            await until(lambda: len(board.given) == 1)
            await world.happens(acknowledged)
            await until(lambda: len(board.given) == 2)
            await world.nothing_waits()
        async with notifying(store, others=[board]) as world:
            await world.happens(over(fired))
            await until(lambda: len(board.given) == 3)

    asyncio.run(story())
    assert [(one.kind, one.receipt) for one in board.given] == [
        ("firing", None),
        ("update", "receipt 1"),
        ("resolved", "receipt 1"),
    ]
    assert len({one.incident for one in board.given}) == 1


def _last_care(board: EditedBoard) -> str | None:
    care = board.given[-1].news[0].acknowledged
    return None if care is None else care.by


def test_where_a_message_was_lost_and_made_anew_later_ones_bring_the_newer_receipt(store: Store) -> None:
    fired = recent()
    board = EditedBoard()
    board.lost.add("receipt 1")

    async def story() -> None:
        async with notifying(store, others=[board]) as world:
            await world.happens(fired)
            await until(lambda: len(board.given) == 1)
            for by in ("maria", "ann"):
                care = wire.Acknowledgement(by=by, at=1.0)
                said = msgspec.structs.replace(fired, at=time.time(), change="acknowledged", acknowledged=care)
                await world.happens(said)
                await until(lambda name=by: _last_care(board) == name)  # type: ignore[misc]
            await world.nothing_waits()
        async with notifying(store, others=[board]) as world:
            await world.happens(over(fired))
            await until(lambda: len(board.given) == 4)

    asyncio.run(story())
    assert [one.receipt for one in board.given] == [None, "receipt 1", "receipt 2", "receipt 2"]


def test_of_a_message_that_has_arrived_the_words_are_not_kept(store: Store, receiver: Receiver) -> None:
    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await world.happens(recent(0), recent(1))
            await until(lambda: world.status().delivered_total == 1)

    asyncio.run(story())
    (kept,) = store.account("ops", [one.id for one in store.open_alerts()], time.time()).last.values()
    assert "nearly full" in receiver.received[0].body.decode()
    assert "nearly full" not in kept.document
    assert mail_again(kept) is not None


# ---------------------------------------------------------------- trouble


def test_a_message_that_fails_is_tried_again_as_it_was_and_news_wait_for_the_next(
    store: Store, receiver: Receiver
) -> None:
    receiver.answer(Answer(503))

    async def story() -> None:
        async with notifying(store, webhook(receiver), patience=half_a_second_and_more) as world:
            await world.happens(recent(0))
            await until(lambda: world.status().retries_total == 1)
            assert world.status().health == "failing"
            await world.happens(recent(1))
            await until(lambda: world.status().delivered_total == 2)
            assert (world.status().health, world.status().retries_total) == ("ok", 1)
            assert "answered 503" in str(world.status().last_error)

    asyncio.run(story())
    refused, taken, news = receiver.received
    assert (refused.body, refused.headers["webhook-id"]) == (taken.body, taken.headers["webhook-id"])
    assert gpus_of(news) == ["1"]
    assert taken.at - refused.at >= 0.5  # the first pause of 1 s, shortened by half by chance


def test_retry_after_is_respected(store: Store, receiver: Receiver) -> None:
    receiver.answer(Answer(429, {"Retry-After": "1"}))

    async def story() -> None:
        async with notifying(store, slack(receiver)) as world:
            await world.happens(recent())
            await until(lambda: world.status("team").delivered_total == 1)

    asyncio.run(story())
    refused, taken = receiver.received
    assert taken.at - refused.at >= 1.0


def test_a_message_that_a_receiver_chokes_on_holds_up_no_other(store: Store, receiver: Receiver) -> None:
    receiver.answer(Answer(500))

    async def story() -> None:
        async with notifying(store, webhook(receiver), patience=half_a_second_and_more) as world:
            await world.happens(recent(0, run="bad", severity="critical"))
            await until(lambda: world.status().retries_total == 1)
            await world.happens(recent(0, run="good"))
            await until(lambda: len(receiver.received) == 3)

    asyncio.run(story())
    assert [one.json()["groupLabels"]["run"] for one in receiver.received] == ["bad", "good", "bad"]


def test_a_dead_channel_does_not_delay_another(store: Store, receiver: Receiver, another: Receiver) -> None:
    receiver.always(Answer(503, {"Retry-After": "3600"}))

    async def story() -> None:
        async with notifying(store, slack(receiver), webhook(another)) as world:
            await world.happens(*(recent(run=f"run{number}") for number in range(5)))
            await until(lambda: len(another.received) == 5)
            await until(lambda: world.status("ops").waiting == 0)
            await until(lambda: world.status("team").retries_total == 1)
            assert (world.status("team").waiting, world.status("team").delivered_total) == (5, 0)

    asyncio.run(story())
    assert len(receiver.received) == 1


def test_a_channel_that_refuses_is_marked_and_announced_once_until_it_works_again(
    store: Store, receiver: Receiver, another: Receiver
) -> None:
    receiver.answer(Answer(404), Answer(404), Answer(200))
    first = recent(run="one", severity="critical")

    async def story() -> None:
        pager = webhook(another, "pager", severity="critical")
        async with notifying(store, webhook(receiver), pager, route=Route(channels=("ops",))) as world:
            await world.happens(first)
            await until(lambda: world.status().failed_total == 1)
            assert world.status().health == "failed"
            await world.happens(recent(run="two"))
            await until(lambda: world.status().failed_total == 2)
            await world.happens(recent(run="three"))
            await until(lambda: len(another.received) == 2)
            assert world.status().health == "ok"

    asyncio.run(story())
    assert [request.json()["status"] for request in another.received] == ["firing", "resolved"]
    assert all("ops" in request.body.decode() for request in another.received)
    [told] = store.deliveries_of(first.id)
    assert (told.state, told.attempts, "answered 404" in str(told.error)) == ("failed", 1, True)


def test_what_was_refused_is_told_when_somebody_asks_for_it(store: Store, receiver: Receiver) -> None:
    receiver.answer(Answer(404))
    fired = recent()

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await world.happens(fired)
            await until(lambda: world.status().failed_total == 1)
            await world.notifier.retry("ops")
            await until(lambda: world.status().delivered_total == 1)
            assert (world.status().health, world.status().failed_total) == ("ok", 1)
            with pytest.raises(KeyError):
                await world.notifier.retry("nobody")

    asyncio.run(story())
    assert [gpus_of(request) for request in receiver.received] == [["0"], ["0"]]
    assert store.deliveries_of(fired.id)[-1].state == "delivered"


def test_what_comes_while_a_channel_begins_anew_is_told(store: Store, receiver: Receiver) -> None:
    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            retrying = asyncio.ensure_future(world.notifier.retry("ops"))
            await asyncio.sleep(0)
            await world.happens(recent(0))
            await retrying
            await until(lambda: world.status().delivered_total == 1)
            await world.nothing_waits()

    asyncio.run(story())
    assert len(receiver.received) == 1


def test_a_refusal_is_remembered_and_told_again_by_the_next_server(store: Store, receiver: Receiver) -> None:
    receiver.answer(Answer(401))
    fired = recent()

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await world.happens(fired)
            await until(lambda: world.status().failed_total == 1)
        receiver.always(Answer(503))
        async with notifying(store, webhook(receiver)) as world:
            assert world.status().health == "failed"
            assert "answered 401" in str(world.status().last_error)
            receiver.always(Answer(200))
            await until(lambda: world.status().health == "ok")

    asyncio.run(story())
    assert len(set(ids_of(receiver))) == 1  # the same is said by the same id


def test_a_channel_with_a_defect_of_ours_goes_on(store: Store) -> None:
    class Defective(EditedBoard):
        async def send(self, notice: Notice) -> Outcome:
            if not self.given:
                self.given.append(notice)
                raise ZeroDivisionError
            return await super().send(notice)

    board = Defective()

    async def story() -> None:
        async with notifying(store, others=[board]) as world:
            await world.happens(recent(run="one"))
            await until(lambda: world.status("board").failed_total == 1)
            await world.happens(recent(run="two"))
            await until(lambda: world.status("board").delivered_total == 1)

    asyncio.run(story())


def test_an_alert_that_meets_a_defect_of_ours_costs_no_other_alert_and_not_who_offers_it(
    store: Store, receiver: Receiver
) -> None:
    strange = msgspec.structs.replace(recent(1, run="one"), severity="dire")

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            world.notifier.offer([strange, recent(2, run="two")])
            world.notifier.offer([recent(3, run="three")])
            await until(lambda: world.status().delivered_total == 2)

    asyncio.run(story())
    assert sorted(gpus_of(request) for request in receiver.received) == [["2"], ["3"]]


def test_what_comes_for_a_channel_that_does_not_look_is_bounded_and_counted() -> None:
    inbox, fired = Inbox(), recent()
    route = Router(None, ["ops"], Timing(0.0, 0.0, 0.0)).stray("ops")
    for _ in range(ARRIVALS_MAX + 3):
        inbox.put((fired, route), 1.0)
    assert inbox.dropped_total == 3
    assert [inbox.pop() for _ in range(ARRIVALS_MAX + 1)][-1] is None


def test_a_success_ends_the_row_of_failures(store: Store, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.answer(Answer(503), Answer(200), Answer(503), Answer(200))

    async def story() -> None:
        async with notifying(store, webhook(receiver), patience=half_a_second_and_more) as world:
            for run in ("one", "two"):
                await world.happens(recent(run=run))
                await world.nothing_waits()

    asyncio.run(story())
    pauses = [record.getMessage().rsplit("; ", 1)[1] for record in caplog.records if "trying" in record.getMessage()]
    assert pauses == ["trying again in 0.5 s", "trying again in 0.5 s"]


# ---------------------------------------------------------------- a database that fails


def test_people_are_told_while_the_database_fails_and_it_is_made_up_for(store: Store, receiver: Receiver) -> None:
    ledger = BreakableLedger(store)
    first = recent(run="one")

    async def story() -> None:
        async with notifying(store, webhook(receiver), ledger=ledger) as world:
            ledger.is_broken = True
            await world.happens(first)
            await until(lambda: world.status().delivered_total == 1)
            assert store.deliveries_of(first.id) == []
            ledger.is_broken = False
            await world.happens(recent(run="two"))
            await until(lambda: world.status().delivered_total == 2)
            await world.nothing_waits()

    asyncio.run(story())
    assert [one.state for one in store.deliveries_of(first.id)] == ["delivered"]
    assert len(receiver.received) == 2


def test_what_could_not_be_noted_is_once_the_database_takes_it_though_nothing_else_happens(
    store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "KEEP_AGAIN_SECONDS", 0.02)
    ledger = BreakableLedger(store)
    first = recent()

    async def story() -> None:
        async with notifying(store, webhook(receiver), ledger=ledger) as world:
            ledger.is_broken = True
            await world.happens(first)
            await until(lambda: world.status().delivered_total == 1)
            ledger.is_broken = False
            await until(lambda: [one.state for one in store.deliveries_of(first.id)] == ["delivered"])

    asyncio.run(story())


def test_what_could_not_be_noted_is_when_the_server_stops(store: Store, receiver: Receiver) -> None:
    ledger = BreakableLedger(store)

    async def story() -> None:
        async with notifying(store, webhook(receiver), ledger=ledger) as world:
            ledger.is_broken = True
            await world.happens(recent())
            await until(lambda: world.status().delivered_total == 1)
            ledger.is_broken = False
        async with notifying(store, webhook(receiver)) as world:
            await world.nothing_waits()

    asyncio.run(story())
    assert len(receiver.received) == 1


def test_what_is_said_again_because_nothing_could_be_noted_has_the_same_id(store: Store, receiver: Receiver) -> None:
    ledger = BreakableLedger(store)

    async def story() -> None:
        async with notifying(store, webhook(receiver), ledger=ledger) as world:
            ledger.is_broken = True
            await world.happens(recent())
            await until(lambda: world.status().delivered_total == 1)
        async with notifying(store, webhook(receiver)) as world:
            await until(lambda: world.status().delivered_total == 1)

    asyncio.run(story())
    assert len(receiver.received) == 2
    assert len(set(ids_of(receiver))) == 1


def test_a_database_that_cannot_be_read_at_the_start_stops_no_new_alert(store: Store, receiver: Receiver) -> None:
    ledger = BreakableLedger(store)
    ledger.is_broken = True

    async def story() -> None:
        async with notifying(store, webhook(receiver), ledger=ledger) as world:
            await world.happens(recent())
            await until(lambda: world.status().delivered_total == 1)

    asyncio.run(story())


def test_what_nobody_was_told_is_once_the_database_can_be_read(store: Store, receiver: Receiver) -> None:
    ledger = BreakableLedger(store)
    ledger.is_broken = True
    store.append([recent(0)])  # by an earlier server, which died before it told anyone

    async def story() -> None:
        async with notifying(store, webhook(receiver), ledger=ledger):
            ledger.is_broken = False
            await until(lambda: len(receiver.received) == 1)

    asyncio.run(story())
    assert len(receiver.received) == 1


# ---------------------------------------------------------------- restarts


def test_a_restart_sends_the_same_message_again_and_then_what_came_meanwhile(store: Store, receiver: Receiver) -> None:
    old = recent(9, ago=4000, run="long over")

    async def before() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await world.happens(recent(0, run="told"))
            await until(lambda: world.status().delivered_total == 1)
            receiver.always(Answer(503))
            await world.happens(recent(1, run="untold"))
            await until(lambda: world.status().retries_total >= 1)
            await world.happens(recent(2, run="untold"))

    async def after() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await until(lambda: world.status().delivered_total == 2)
            await world.nothing_waits()

    asyncio.run(before())
    tried = receiver.received[-1]
    store.append([old, msgspec.structs.replace(over(old), at=time.time() - 3900)])
    receiver.always(Answer(200))
    sent_before = len(receiver.received)
    asyncio.run(after())
    again, news = receiver.received[sent_before:]
    assert (again.body, again.headers["webhook-id"]) == (tried.body, tried.headers["webhook-id"])
    assert (gpus_of(again), gpus_of(news)) == (["1"], ["2"])


def test_what_is_offered_while_the_rest_is_recovered_is_sent_once(store: Store, receiver: Receiver) -> None:
    news = recent(0)
    store.append([news])

    async def story() -> None:
        async with notifying(store, webhook(receiver), before=[news]) as world:
            await until(lambda: world.status().delivered_total == 1)
            await world.nothing_waits()

    asyncio.run(story())
    assert [gpus_of(request) for request in receiver.received] == [["0"]]


def test_a_message_of_another_version_that_cannot_be_read_is_made_anew(store: Store, receiver: Receiver) -> None:
    fired = recent()
    store.append([fired])
    store.keep_letters([Letter("ops", "msg_1", "inc_1", "firing", time.time(), "{}", (key_of(fired),))])

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await until(lambda: world.status().delivered_total == 1)

    asyncio.run(story())
    assert [gpus_of(request) for request in receiver.received] == [["0"]]


def test_a_channel_that_alerts_are_not_meant_for_any_more_hears_of_the_end_of_what_it_was_told(
    store: Store, receiver: Receiver
) -> None:
    fired, other = recent(0), recent(0, run="other")

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await world.happens(fired)
            await until(lambda: world.status().delivered_total == 1)
        nobody = Route(channels=())
        async with notifying(store, webhook(receiver, severity="critical"), route=nobody) as world:
            await world.happens(other, over(fired), over(other))
            await until(lambda: world.status().delivered_total == 1)
            await world.nothing_waits()

    asyncio.run(story())
    assert [(one.json()["groupLabels"]["run"], one.json()["status"]) for one in receiver.received] == [
        ("qwen7b", "firing"),
        ("qwen7b", "resolved"),
    ]


def test_two_who_ask_at_once_and_a_server_that_stops_leave_one_courier_or_none(
    store: Store, receiver: Receiver
) -> None:
    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await asyncio.gather(world.notifier.retry("ops"), world.notifier.retry("ops"))
            await world.happens(recent(0))
            await until(lambda: world.status().delivered_total == 1)
            await world.nothing_waits()
            await asyncio.gather(world.notifier.retry("ops"), world.notifier.stop(), world.notifier.retry("ops"))
            assert not [task for task in asyncio.all_tasks() if task.get_name() == "notify ops"]

    asyncio.run(story())
    assert len(receiver.received) == 1


def test_a_new_channel_is_told_of_open_alerts_only(store: Store, receiver: Receiver) -> None:
    ended = recent(1, ago=5.0)
    store.append([recent(0), ended, msgspec.structs.replace(over(ended), at=time.time() - 1)])

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await until(lambda: world.status().delivered_total == 1)
            await world.nothing_waits()

    asyncio.run(story())
    assert [gpus_of(request) for request in receiver.received] == [["0"]]


def test_a_message_on_its_way_when_the_server_stops_is_waited_for(store: Store, receiver: Receiver) -> None:
    answered = threading.Event()
    receiver.always(Answer(hold=answered))
    fired = recent()

    async def story() -> None:
        async with notifying(store, webhook(receiver)) as world:
            await world.happens(fired)
            await until(lambda: len(receiver.received) == 1)
            asyncio.get_running_loop().call_later(0.1, answered.set)

    asyncio.run(story())
    assert [one.state for one in store.deliveries_of(fired.id)] == ["delivered"]
