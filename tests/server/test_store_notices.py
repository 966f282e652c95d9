"""The outbox in the database: messages, what they tell of, and what became of them."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.postgres.fixtures import on_sqlite
from tests.server.notify_samples import START, notice, transition

from oomwatch import wire
from oomwatch.letters import Account, Letter, Standing, key_of
from oomwatch.notify.outbox import mail_of
from oomwatch.store.errors import StoreError
from oomwatch.store.store import Store

FIRED = transition(0)
OVER = transition(0, state="resolved", at=START + 60)
OTHER = transition(1, at=START + 40)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    opened.append([FIRED, OTHER, OVER])
    yield opened
    opened.close()


def letter(*told: wire.Transition, channel: str = "team", **fields: object) -> Letter:
    covers = tuple(key_of(one) for one in told)
    return mail_of(channel, notice(told), covers).letter._replace(**fields)  # type: ignore[arg-type]


def account(store: Store, channel: str = "team") -> Account:
    return store.account(channel, [FIRED.id, OTHER.id], START)


def test_a_message_comes_back_word_for_word_until_it_is_done_with(store: Store) -> None:
    written = letter(FIRED)
    store.keep_letters([written])
    (waiting,) = account(store).waiting
    assert waiting == written._replace(covers=())
    store.keep_letters([written._replace(state="delivered", attempts=2, done_at=START + 5, receipt="17.1")])
    assert account(store).waiting == []
    assert account(store).receipts == {written.incident: "17.1"}


def test_what_is_told_is_known_by_incident_and_for_each_channel(store: Store) -> None:
    written = letter(FIRED)
    store.keep_letters([written])
    assert account(store).told == {key_of(FIRED): written.incident}
    assert account(store, "other").told == {}


def test_what_was_given_up_counts_as_told_to_nobody_until_it_is_said_anew(store: Store) -> None:
    written = letter(FIRED)
    store.keep_letters([written])
    store.keep_letters([written._replace(state="failed", error="no_service")])
    assert account(store).told == {}
    store.keep_letters([written])
    assert account(store).told == {key_of(FIRED): written.incident}
    assert len(account(store).waiting) == 1


def test_a_later_message_takes_over_what_one_that_was_given_up_told_of(store: Store) -> None:
    store.keep_letters([letter(FIRED, state="failed")])
    later = letter(OVER)
    store.keep_letters([later._replace(covers=(key_of(FIRED), key_of(OVER)))])
    assert account(store).told == dict.fromkeys([key_of(FIRED), key_of(OVER)], later.incident)


@on_sqlite
def test_an_attempt_does_not_write_the_whole_message_again(store: Store, tmp_path: Path) -> None:
    written = letter(FIRED)
    store.keep_letters([written])
    with contextlib.closing(sqlite3.connect(tmp_path / "oomwatch.db")) as database:
        database.execute(
            "CREATE TRIGGER rewritten BEFORE UPDATE OF document ON notices BEGIN SELECT RAISE(ABORT, 'rewritten'); END"
        )
    store.keep_letters([written._replace(attempts=1, error="503")])
    assert account(store).waiting[0].attempts == 1
    with pytest.raises(StoreError, match="rewritten"):
        store.keep_letters([written._replace(state="delivered", document="{}")])


def test_what_has_arrived_is_not_written_as_waiting_again(store: Store) -> None:
    written = letter(FIRED)
    store.keep_letters([written._replace(state="delivered")])
    store.keep_letters([written])
    assert account(store).waiting == []


def test_what_is_not_stored_or_was_pruned_is_passed_over(store: Store) -> None:
    unknown = transition(7)
    written = letter(unknown)
    store.keep_letters([written])
    assert store.account("team", [unknown.id], START).told == {}
    store.append([unknown])
    store.keep_letters([written])
    assert list(store.account("team", [unknown.id], START).told) == [key_of(unknown)]


def test_changes_of_one_moment_are_told_apart(store: Store) -> None:
    muted = msgspec.structs.replace(FIRED, change="muted")
    store.append([muted])
    store.keep_letters([letter(muted, FIRED)._replace(covers=(key_of(muted),))])
    assert list(account(store).told) == [key_of(muted)]


def test_the_last_message_of_an_incident_is_given_but_no_mere_update(store: Store) -> None:
    first = letter(FIRED)
    store.keep_letters([first, letter(OTHER, incident=first.incident, kind="update")])
    assert account(store).last == {first.incident: first._replace(covers=())}


def test_a_channel_is_known_since_it_was_first_asked_for_and_its_health_is_kept(store: Store) -> None:
    assert store.account("team", [], START + 1).standing == Standing("team", START + 1)
    failed = Standing("team", START + 1, "failed", "no_service", START + 2)
    store.keep_letters([], [failed])
    assert store.account("team", [], START + 9).standing == failed


def test_a_notifier_is_told_the_stories_of_open_late_and_unjudged_alerts(store: Store) -> None:
    judged = transition(2, at=START + 100)
    ended = msgspec.structs.replace(judged, state="resolved", at=START + 200)
    verdict = msgspec.structs.replace(ended, change="outcome", at=START + 300)
    store.append([judged, ended])
    assert [key_of(one) for one in store.stories(START + 1000, START + 150)] == [
        key_of(one) for one in (OTHER, judged, ended)
    ]
    store.append([verdict])
    assert store.stories(START + 1000, START + 150) == [OTHER]
    assert store.stories(START + 50, START + 1000) == [FIRED, OTHER, OVER, judged, ended, verdict]


def test_the_messages_that_told_of_an_alert_are_listed_with_what_became_of_them(store: Store) -> None:
    first = letter(FIRED, OTHER, made_at=START + 1, state="delivered", attempts=1, done_at=START + 2)
    over = letter(OVER, incident=first.incident, made_at=START + 3, attempts=4, error="no answer")
    store.keep_letters([over, first, letter(OTHER, channel="ops")])
    told = store.deliveries_of(FIRED.id)
    assert [(one.channel, one.kind, one.state, one.attempts, one.error) for one in told] == [
        ("team", "firing", "delivered", 1, None),
        ("team", "resolved", "waiting", 4, "no answer"),
    ]
    assert [(one.channel, one.id) for one in store.deliveries_of(OTHER.id)] == [
        ("team", first.id),
        ("ops", letter(OTHER, channel="ops").id),
    ]
    assert store.deliveries_of("nobody") == []


def test_messages_are_pruned_with_the_history_but_not_before_they_have_arrived(store: Store) -> None:
    old, waiting, new = (
        letter(one, channel=channel, made_at=made_at, state=state)
        for one, channel, made_at, state in [
            (OTHER, "a", START, "delivered"),
            (OTHER, "b", START, "waiting"),
            (OTHER, "c", START + 5000, "delivered"),
        ]
    )
    store.keep_letters([old, waiting, new])
    store.prune(START + 6000, 3600)
    assert [one.channel for one in store.deliveries_of(OTHER.id)] == ["b", "c"]
    assert store.account("a", [OTHER.id], START).told == {key_of(OTHER): None}
    store.prune(START + 5000 + 86_400, 3600)
    assert [one.channel for one in store.deliveries_of(OTHER.id)] == []
