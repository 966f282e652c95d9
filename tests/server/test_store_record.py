"""What agents send is stored once, in order, and comes back for the engine to warm up on."""

from collections.abc import Iterator

import pytest

from oomwatch import wire
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0  # a full hour


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def hello(node: str = "n1", session: str = "s1", **fields: object) -> wire.Hello:
    values: dict[str, object] = {"sent_at": NOON, "interval_seconds": 1.0, "facts": wire.NodeFacts()}
    return wire.Hello(protocol=1, agent_version="1", node=node, session=session, **{**values, **fields})  # type: ignore[arg-type]


def sample(seq: int, used_bytes: int | None = 5, at: float | None = None, gpu: str = "0") -> wire.Sample:
    at = NOON + seq if at is None else at
    return wire.Sample(seq=seq, at=at, gpus=(wire.GpuSample(gpu=gpu, used_bytes=used_bytes),))


def step(seq: int, number: int, run: str = "r1", at: float | None = None) -> wire.Event:
    return wire.Event(seq=seq, at=NOON + seq if at is None else at, run=run, body=wire.Step(step=number))


def batch(*messages: wire.AgentMessage, node: str = "n1", session: str = "s1", received_at: float = NOON) -> Batch:
    return Batch(entries=tuple(Entry(node=node, session=session, received_at=received_at, message=m) for m in messages))


def used(store: Store) -> list[tuple[float, int | None]]:
    return [(one.at - NOON, one.gpus[0].used_bytes) for _, one in store.recent_samples(0.0)]


def test_samples_come_back_without_seq_and_processes(store: Store) -> None:
    gpu = wire.GpuSample(gpu="3:1", status="lost", utilization_ratio=0.97, processes=(wire.GpuProcess(pid=1),))
    host = wire.HostSample(memory_used_bytes=2**30, memory_pressure_some_ratio=0.0123, oom_kill_total=0)
    store.record(batch(wire.Sample(seq=1, at=NOON + 0.25, gpus=(gpu, wire.GpuSample(gpu="a")), host=host)))
    plain = wire.GpuSample(gpu="3:1", status="lost", utilization_ratio=0.97)
    expected = wire.Sample(seq=0, at=NOON + 0.25, gpus=(plain, wire.GpuSample(gpu="a")), host=host)
    assert list(store.recent_samples(NOON)) == [("n1", expected)]


def test_samples_of_several_nodes_come_node_by_node_in_the_order_of_time(store: Store) -> None:
    store.record(batch(sample(1), sample(3)))
    store.record(batch(sample(2), sample(4), node="n2", session="s2"))
    assert [(node, one.at - NOON) for node, one in store.recent_samples(NOON + 2)] == [("n1", 3), ("n2", 2), ("n2", 4)]


def test_recording_a_batch_again_doubles_nothing(store: Store) -> None:
    whole = batch(hello(), sample(1), step(2, 1), sample(3))
    for _ in range(2):
        store.record(whole)
    assert len(list(store.recent_samples(0.0))) == 2
    assert len(list(store.recent_events(0.0))) == 1
    assert store.progress("n1", "s1") == 3


def test_a_batch_that_overlaps_the_last_adds_only_what_is_new(store: Store) -> None:
    store.record(batch(sample(1, 10), sample(2, 20)))
    store.record(batch(sample(2, 99), sample(3, 30)))
    assert used(store) == [(1, 10), (2, 20), (3, 30)]


def test_progress_belongs_to_a_session(store: Store) -> None:
    store.record(batch(sample(7)))
    assert store.progress("n1", "s1") == 7
    assert store.progress("n1", "s2") == 0
    assert store.progress("n2", "s1") == 0


def test_a_late_sample_lands_where_it_belongs(store: Store) -> None:
    store.record(batch(sample(1, 10, NOON + 10), sample(2, 30, NOON + 30)))
    store.record(batch(sample(3, 20, NOON + 20)))
    assert used(store) == [(10, 10), (20, 20), (30, 30)]


def test_two_chunks_that_begin_at_the_same_millisecond_are_both_kept(store: Store) -> None:
    store.record(batch(sample(1, 10), sample(2, 20)))
    other = wire.Sample(seq=1, at=NOON + 1, gpus=(wire.GpuSample(gpu="0", used_bytes=10), wire.GpuSample(gpu="1")))
    store.record(batch(other, sample(2, 15, NOON + 1.5), session="s2"))
    assert used(store) == [(1, 10), (1.5, 15), (2, 20)]
    assert {gpu.gpu for _, one in store.recent_samples(0.0) for gpu in one.gpus} == {"0", "1"}


def test_samples_on_both_sides_of_an_hour_are_all_there(store: Store) -> None:
    store.record(batch(*(sample(n, n, NOON + 3595 + n) for n in range(1, 11))))
    assert [value for _, value in used(store)] == list(range(1, 11))
    assert [one.gpus[0].used_bytes for _, one in store.recent_samples(NOON + 3600)] == [5, 6, 7, 8, 9, 10]


def test_events_come_back_in_the_order_of_time_and_by_kind(store: Store) -> None:
    origin = wire.Origin(source="driver.log", line=3, rank=0)
    oom = wire.Event(
        seq=1, at=NOON + 5, body=wire.DeviceOom(error="OutOfMemoryError", gpu="2"), origin=origin, backlog=True
    )
    store.record(batch(oom, step(2, 1)))
    got = [one for _, one in store.recent_events(NOON)]
    assert [one.at - NOON for one in got] == [2, 5]
    assert got[1] == wire.Event(seq=0, at=NOON + 5, body=oom.body, origin=origin, backlog=True)
    assert [one.body for _, one in store.recent_events(NOON, kinds=["step"])] == [wire.Step(step=1)]
    assert list(store.recent_events(NOON + 6)) == []


def test_the_last_hello_of_a_node_is_what_is_known_of_it(store: Store) -> None:
    newer = hello(facts=wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid="u", name="H100", total_bytes=80),)))
    store.record(batch(hello()))
    store.record(batch(newer, received_at=NOON + 1))
    store.record(batch(sample(1), received_at=NOON + 9))
    assert store.nodes() == [(newer, NOON + 9, False)]


def test_a_node_is_stopped_by_its_bye_until_another_agent_says_hello(store: Store) -> None:
    farewell = batch(hello(), wire.Bye(seq=1, at=NOON))
    for _ in range(2):  # the same batch again wakes nobody
        store.record(farewell)
        assert [node.stopped for node in store.nodes()] == [True]
    store.record(batch(hello(session="s2"), session="s2"))
    assert [node.stopped for node in store.nodes()] == [False]


def test_the_bye_of_an_agent_that_was_replaced_stops_nothing(store: Store) -> None:
    store.record(batch(hello(session="s2"), session="s2"))
    store.record(batch(wire.Bye(seq=9, at=NOON), session="s1"))
    assert [node.stopped for node in store.nodes()] == [False]


def test_a_message_of_a_node_that_never_said_hello_is_kept_and_names_no_node(store: Store) -> None:
    store.record(batch(sample(1)))
    assert store.nodes() == []
    assert used(store) == [(1, 5)]


def test_a_run_is_known_by_the_nodes_and_times_that_named_it(store: Store) -> None:
    store.record(batch(hello(run="r1", simulated=True), sample(1), step(2, 1, run="r2")))
    store.record(batch(hello("n2", "s2", run="r1", sent_at=NOON + 5), sample(30), node="n2", session="s2"))
    assert store.runs() == [
        ("r1", ("n1", "n2"), NOON, NOON + 30, True),
        ("r2", ("n1",), NOON + 2, NOON + 2, True),
    ]


def test_steps_are_the_last_ones_of_the_run_oldest_first(store: Store) -> None:
    store.record(batch(*(step(n, n) for n in range(1, 6)), step(6, 99, run="other")))
    assert store.steps("r1", limit=3) == [wire.StepPoint(at=NOON + n, step=wire.Step(step=n)) for n in (3, 4, 5)]


def test_a_step_read_again_by_a_new_agent_counts_once_and_from_the_first_time(store: Store) -> None:
    store.record(batch(step(1, 1), step(2, 2)))
    store.record(batch(step(1, 1, at=NOON + 500), step(2, 2, at=NOON + 500), session="s2"))
    assert [(point.at - NOON, point.step.step) for point in store.steps("r1", limit=10)] == [(1, 1), (2, 2)]


def test_an_empty_batch_is_nothing(store: Store) -> None:
    store.record(Batch(entries=()))
    assert store.nodes() == []


def test_what_was_stored_under_a_name_that_stood_for_a_run_is_the_runs(store: Store) -> None:
    named = wire.Event(seq=3, at=NOON + 3, run="demo/qwen", body=wire.RunNamed(provisional="job 1"))
    store.record(batch(hello(), step(1, 1, run="job 1"), step(2, 1, run="another")))
    store.record(batch(hello("n2", "s2"), step(1, 2, run="job 1"), named, node="n2", session="s2"))
    assert [(one.run, one.nodes) for one in store.runs()] == [("demo/qwen", ("n1", "n2")), ("another", ("n1",))]
    assert [point.step.step for point in store.steps("demo/qwen", 10)] == [1, 2]
    assert store.steps("job 1", 10) == []
