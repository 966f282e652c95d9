"""The database's past as a trace: judged, it says what the live engine said."""

import heapq
from math import floor
from pathlib import Path

import pytest
from tests.server.house import GIB, hello, sample
from tests.tryout.past import BEGIN, IN_FORCE, entry, peak, readings, store_with

from oomwatch import wire
from oomwatch.backtest.drive import drive, without_silence
from oomwatch.core.engine import Engine
from oomwatch.rulefile import read_rules
from oomwatch.store.store import Batch, Store
from oomwatch.trace import read_trace, replay
from oomwatch.tryout.recording import NothingChosenError, choose, lines_of

ROOT = Path(__file__).resolve().parents[2]
Told = tuple[str, wire.AgentMessage]


def two_nodes() -> list[Told]:
    """Over a full hour, at other moments of the second, with a gap of eleven minutes in one."""
    one = readings("a", peak(1500, at=590, lasts=60), offset=0.3)
    other = readings("b", peak(1500, at=1300, lasts=100), offset=0.7)
    other = [told for place, told in enumerate(other) if not 620 <= place < 1280]
    steps: list[Told] = [
        (
            "a",
            wire.Event(seq=10_000 + step, at=BEGIN + 100 * step, run="r", body=wire.Step(step=step, step_seconds=100)),
        )
        for step in range(1, 15)
    ]
    return list(heapq.merge(one, other, steps, key=lambda told: at_of(told[1])))


def at_of(message: wire.AgentMessage) -> float:
    assert not isinstance(message, wire.Hello)
    return message.at


def live(told: list[Told], end: float) -> list[wire.Transition]:
    """As the server does it: each message when it comes, and a look at the clock each second."""
    engine = Engine(without_silence(IN_FORCE))
    said: list[wire.Transition] = []
    for node in dict.fromkeys(node for node, _ in told):
        said += engine.observe(hello(node, sent_at=BEGIN), node, BEGIN)
    engine.advance(BEGIN)
    second = BEGIN
    for node, message in told:
        while second + 1 <= floor(at_of(message)):
            second += 1
            said += engine.advance(second)
        said += engine.observe(message, node, at_of(message))
    while second < end:
        second += 1
        said += engine.advance(second)
    return said


def essence(said: list[wire.Transition]) -> list[tuple[object, ...]]:
    """Values are kept as float32, good to one part in sixteen million."""
    return [
        (one.id, one.alert, one.labels, one.change, one.state, one.at, one.outcome, one.value and round(one.value, 6))
        for one in said
    ]


def test_the_recording_says_what_the_live_engine_said(tmp_path: Path) -> None:
    told, end = two_nodes(), BEGIN + 1600
    store = store_with(tmp_path, told)
    recorded = drive(lines_of(store, choose(store), BEGIN, end), IN_FORCE, live=False).transitions
    expected = live(told, end)
    assert {one.labels["node"] for one in expected if one.state == "firing"} == {"a", "b"}
    assert essence(recorded) == essence(expected)
    store.close()


def test_every_message_comes_once_and_in_the_order_of_time(tmp_path: Path) -> None:
    told = two_nodes()
    store = store_with(tmp_path, told)
    while store.compact(BEGIN + 10_000):
        pass
    lines = list(lines_of(store, choose(store), BEGIN, BEGIN + 1600))
    heard = [line for line in lines if line.message is not None and not line.recalled]
    moments = [(line.node, round(at_of(line.message), 3)) for line in heard if line.message is not None]
    assert moments == [(node, round(at_of(message), 3)) for node, message in told]
    times = [line.now or line.advance or 0.0 for line in lines]
    assert times == sorted(times)
    store.close()


def test_what_came_before_is_recalled_and_not_judged(tmp_path: Path) -> None:
    store = store_with(tmp_path, readings("a", peak(400, at=60, lasts=100)))
    start = BEGIN + 200
    lines = list(lines_of(store, choose(store), start, BEGIN + 400))
    recalled = [line.message for line in lines if line.recalled]
    assert sum(isinstance(one, wire.Sample) for one in recalled) == 200
    assert drive(iter(lines), IN_FORCE, live=False).transitions == []
    store.close()


def test_a_node_that_came_later_was_not_silent_until_then(tmp_path: Path) -> None:
    early = readings("a", [10] * 400)
    late = readings("b", [10] * 200, offset=200)
    store = store_with(tmp_path, heapq.merge(early, late, key=lambda told: at_of(told[1])))
    end = BEGIN + 500
    said = list(replay(lines_of(store, choose(store), BEGIN - 3600, end), IN_FORCE))
    assert {one.labels["node"]: round(one.at - BEGIN) for one in said if one.state == "firing"} == {"a": 430, "b": 430}
    store.close()


def test_a_nodes_engines_come_back_as_one(tmp_path: Path) -> None:
    engines = (
        wire.EngineSample(engine="vllm", address="a:1", kv_used_ratio=0.5, preemptions_total=3),
        wire.EngineSample(engine="vllm", address="a:2", kv_used_ratio=0.9, preemptions_total=4),
    )
    with_engines = wire.Sample(seq=1, at=BEGIN, host=wire.HostSample(memory_used_bytes=GIB), engines=engines)
    store = store_with(tmp_path, [("a", with_engines), ("a", sample(2, 40, BEGIN + 1))])
    (found, after) = (one for _, one in store.samples_in_order(BEGIN, BEGIN + 10, {"a"}))
    assert [(one.kv_used_ratio, one.preemptions_total) for one in found.engines] == [(0.9, 7)]
    assert after.engines == ()
    store.close()


def test_only_the_nodes_that_were_asked_for_are_read(tmp_path: Path) -> None:
    store = store_with(tmp_path, [*readings("a", peak(5)), *readings("b", peak(5))])
    assert {node for node, _ in store.samples_in_order(BEGIN, BEGIN + 10, {"b"})} == {"b"}
    store.close()


@pytest.fixture
def of_two_runs(tmp_path: Path) -> "Store":
    """Node a trains r and reads its log; node b has r too; node c is of nobody."""
    step = wire.Step(step=1, step_seconds=10)
    told: list[Told] = [*readings("a", [40.0]), *readings("b", [40.0]), *readings("c", [40.0])]
    told += [("a", wire.Event(seq=9, at=BEGIN + 2, run="r", body=step))]
    told += [("b", wire.Event(seq=9, at=BEGIN + 3, run="r", body=step))]
    told += [("c", wire.Event(seq=9, at=BEGIN + 4, run="other", body=step))]
    return store_with(tmp_path, told)


def test_a_run_is_judged_on_its_nodes_and_by_its_events(of_two_runs: Store) -> None:
    lines = list(lines_of(of_two_runs, choose(of_two_runs, run="r"), BEGIN, BEGIN + 10))
    assert {line.node for line in lines if isinstance(line.message, wire.Sample)} == {"a", "b"}
    assert {line.message.run for line in lines if isinstance(line.message, wire.Event)} == {"r"}
    of_two_runs.close()


def test_one_node_still_hears_what_another_reads_of_its_run(of_two_runs: Store) -> None:
    lines = list(lines_of(of_two_runs, choose(of_two_runs, node="b"), BEGIN, BEGIN + 10))
    assert {line.node for line in lines if isinstance(line.message, wire.Sample)} == {"b"}
    assert {line.node for line in lines if isinstance(line.message, wire.Event)} == {"a", "b"}
    of_two_runs.close()


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"node": "x"}, 'no node "x"; it knows a, b, c'), ({"run": "x"}, 'no run "x"; it knows other, r')],
)
def test_who_asks_for_what_is_not_there_is_told_what_is(of_two_runs: Store, asked: dict[str, str], why: str) -> None:
    with pytest.raises(NothingChosenError, match=why):
        choose(of_two_runs, **asked)
    of_two_runs.close()


def test_an_empty_database_has_nothing_to_try_on(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(NothingChosenError, match="no node yet"):
        choose(store)
    store.close()


@pytest.mark.parametrize("name", ["leak", "slow-rollout"])
def test_a_run_that_was_stored_fires_by_the_shipped_rules_as_when_it_came_in(name: str, tmp_path: Path) -> None:
    rules = without_silence(read_rules(ROOT / "alerts.yaml").rules)
    lines = list(read_trace(ROOT / "tests/replay/traces" / f"{name}.jsonl"))
    heard = [(line.node or "", line.message) for line in lines if line.message is not None]
    hellos = [message for _, message in heard if isinstance(message, wire.Hello)]
    start, end = hellos[0].sent_at, max(line.now or line.advance or 0.0 for line in lines)
    store = Store.open(f"sqlite:///{tmp_path / 'run.db'}")
    store.record(Batch(entries=tuple(entry(node, message) for node, message in heard)))
    recorded = drive(lines_of(store, choose(store), start, end), rules, live=False).transitions
    live_said = drive(iter(lines), rules, live=True).transitions
    assert [one for one in live_said if one.state == "firing"]
    assert essence(recorded) == essence(live_said)
    store.close()
