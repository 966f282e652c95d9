"""Which transitions make one message, and when it may go."""

import pytest
from tests.server.notify_samples import START, transition

from oomwatch import wire
from oomwatch.notify import pool as pool_module
from oomwatch.notify.backoff import pause_seconds
from oomwatch.notify.grouping import Group, group, key_of
from oomwatch.notify.pool import Pool


def gpus(message: Group) -> list[str]:
    return [one.labels["gpu"] for one in message.transitions]


def test_the_gpus_of_a_run_are_one_message_whatever_their_node() -> None:
    news = [transition(gpu, node=node) for node in ("gpu-07", "gpu-08") for gpu in range(8)]
    [message] = group(news)
    assert len(message.transitions) == 16
    assert message.topic.run == "qwen7b"
    assert message.topic.node is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (transition(run=None, node="gpu-07"), transition(run=None, node="gpu-08")),
        (transition(run="one"), transition(run="two")),
        (transition(run="one"), transition(run=None)),
        (transition(alert="gpu_memory_high"), transition(alert="host_memory_high")),
        (transition(severity="warning"), transition(severity="critical")),
        (transition(0, state="firing"), transition(1, state="resolved")),
        (transition(simulated=True), transition(simulated=False)),
    ],
    ids=["nodes without a run", "runs", "run and none", "alerts", "severities", "states", "demo and real"],
)
def test_different_matters_are_different_messages(first: wire.Transition, second: wire.Transition) -> None:
    assert [len(message.transitions) for message in group([first, second])] == [1, 1]


def test_gpus_of_a_node_without_a_run_are_one_message_in_the_order_of_their_numbers() -> None:
    [message] = group([transition(gpu, run=None) for gpu in (10, 9, 0, 2)])
    assert gpus(message) == ["0", "2", "9", "10"]


def test_pending_is_never_told() -> None:
    assert group([transition(state="pending")]) == []


def test_what_fired_and_ended_before_anyone_was_told_is_told_once() -> None:
    fired, ended = transition(state="firing"), transition(state="resolved", at=START + 90)
    [message] = group([fired, ended])
    assert message.state == "resolved"
    assert set(message.covers) == {key_of(fired), key_of(ended)}


def test_a_channel_without_resolutions_still_hears_of_what_fired_and_ended() -> None:
    fired, ended = transition(state="firing"), transition(state="resolved", at=START + 90)
    assert [message.state for message in group([fired, ended], merge_resolved=False)] == ["firing", "resolved"]


def test_firing_is_told_before_resolved() -> None:
    messages = group([transition(0, state="resolved"), transition(1, state="firing")])
    assert [message.state for message in messages] == ["firing", "resolved"]


def test_two_episodes_of_one_gpu_are_both_told() -> None:
    [message] = group([transition(started_at=START), transition(started_at=START + 500, at=START + 530)])
    assert len(message.covers) == 2


def a_pool() -> Pool:
    return Pool(wait_seconds=0.25, interval_seconds=30)


def deliver(pool: Pool, now: float) -> list[Group]:
    messages = pool.take(now)
    for message in messages:
        pool.forget(message)
    return messages


def test_the_first_message_waits_for_company() -> None:
    pool = a_pool()
    pool.add([transition(0)], now=100.0)
    pool.add([transition(1)], now=100.2)
    assert pool.take(100.2) == []
    assert pool.next_at() == 100.25
    [message] = deliver(pool, 100.25)
    assert gpus(message) == ["0", "1"]
    assert len(pool) == 0
    assert pool.next_at() is None


def test_later_news_of_a_topic_keeps_the_interval() -> None:
    pool = a_pool()
    pool.add([transition(0)], now=100.0)
    deliver(pool, 101.0)
    pool.add([transition(1)], now=102.0)
    pool.add([transition(2)], now=120.0)
    assert pool.take(130.9) == []
    [message] = deliver(pool, 131.0)
    assert gpus(message) == ["1", "2"]


def test_another_topic_does_not_wait_for_the_interval_of_the_first() -> None:
    pool = a_pool()
    pool.add([transition(0)], now=100.0)
    deliver(pool, 101.0)
    pool.add([transition(0, run="other")], now=102.0)
    assert len(deliver(pool, 102.25)) == 1


def test_a_topic_that_was_quiet_for_long_waits_only_for_company_again() -> None:
    pool = a_pool()
    pool.add([transition(0)], now=100.0)
    deliver(pool, 101.0)
    pool.add([transition(1)], now=500.0)
    assert pool.next_at() == 500.25


def test_the_gravest_is_sent_first() -> None:
    pool = a_pool()
    pool.add([transition(0, severity="info"), transition(0, severity="warning")], now=100.0)
    pool.add([transition(0, severity="critical")], now=100.1)
    order = [deliver(pool, 101.0)[0].topic.severity for _ in range(3)]
    assert order == ["critical", "warning", "info"]


def test_what_failed_waits_behind_what_has_not_been_tried() -> None:
    pool = a_pool()
    pool.add([transition(0, severity="critical")], now=100.0)
    [failed] = pool.take(101.0)
    pool.retry(failed.topic, 101.0)
    pool.add([transition(0, severity="info")], now=101.0)
    assert deliver(pool, 102.0)[0].topic.severity == "info"
    assert deliver(pool, 102.0)[0].topic.severity == "critical"


def test_a_failed_message_is_bundled_with_what_came_meanwhile() -> None:
    pool = a_pool()
    pool.add([transition(0)], now=100.0)
    [failed] = pool.take(101.0)
    pool.retry(failed.topic, 101.0)
    pool.add([transition(1), transition(0, state="resolved", at=START + 60)], now=102.0)
    firing, resolved = deliver(pool, 103.0)
    assert (gpus(firing), gpus(resolved)) == (["1"], ["0"])
    assert len(pool) == 0


def test_the_same_transition_waits_once() -> None:
    pool = a_pool()
    pool.add([transition(0), transition(0)], now=100.0)
    assert len(pool) == 1


def test_a_full_pool_drops_and_counts() -> None:
    pool = a_pool()
    pool.add((transition(gpu) for gpu in range(pool_module.MAX_WAITING + 3)), now=100.0)
    assert (len(pool), pool.dropped_total) == (pool_module.MAX_WAITING, 3)


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
