"""Charts are drawn from named series, whose peaks, gaps and units are those of what was recorded."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.postgres.fixtures import on_sqlite

from oomwatch import wire
from oomwatch.store import columns
from oomwatch.store.history import SERIES
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0  # a full hour
GPU = {"node": "n1", "gpu": "0"}
MIB = 2.0**20


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    facts = wire.NodeFacts(
        gpus=(wire.GpuFacts(gpu="0", uuid="u", name="H100", total_bytes=100 * 2**20, reserved_bytes=20 * 2**20),)
    )
    record(opened, hello(facts))
    yield opened
    opened.close()


def hello(facts: wire.NodeFacts, interval_seconds: float = 1.0) -> wire.Hello:
    return wire.Hello(
        protocol=1,
        agent_version="1",
        node="n1",
        session="s",
        sent_at=NOON,
        interval_seconds=interval_seconds,
        facts=facts,
    )


def record(store: Store, *messages: wire.AgentMessage, session: str = "s") -> None:
    entries = (Entry(node="n1", session=session, received_at=NOON, message=message) for message in messages)
    store.record(Batch(entries=tuple(entries)))


def samples(used_mib: list[int | None], first: int = 0) -> list[wire.Sample]:
    return [
        wire.Sample(
            seq=first + n + 1,
            at=NOON + first + n,
            gpus=(wire.GpuSample(gpu="0", used_bytes=None if mib is None else mib * 2**20),),
        )
        for n, mib in enumerate(used_mib)
    ]


def event(seq: int, body: wire.EventBody, run: str | None = "r1") -> wire.Event:
    return wire.Event(seq=seq, at=NOON + 10 * seq, run=run, body=body)


def test_a_peak_of_one_second_survives_an_hour_of_buckets_and_the_merging_of_chunks(store: Store) -> None:
    used: list[int | None] = [50] * 3600
    used[1234] = 79
    for first in range(0, 3600, 600):
        record(store, *samples(used[first : first + 600], first))
    before = store.series("gpu_used_bytes", GPU, NOON, NOON + 3599, 900)
    assert before.times == (NOON, NOON + 900, NOON + 1800, NOON + 2700)
    assert before.max == (50 * MIB, 79 * MIB, 50 * MIB, 50 * MIB)
    assert before.min == (50 * MIB,) * 4
    assert before.mean[1] == pytest.approx((50 + 29 / 900) * MIB)
    while store.compact(NOON + 86_400):
        pass
    after = store.series("gpu_used_bytes", GPU, NOON, NOON + 3599, 900)
    assert (after.times, after.min, after.max) == (before.times, before.min, before.max)
    assert after.mean == pytest.approx(before.mean, abs=29 * MIB / 510)  # half a part of what lies between


def test_used_ratio_is_of_the_usable_memory(store: Store) -> None:
    record(store, *samples([40, 60]))
    found = store.series("gpu_used_ratio", GPU, NOON, NOON + 10, 10)
    assert (found.unit, found.min, found.max) == ("ratio", (0.5,), (0.75,))


def test_the_ratio_of_a_gpu_whose_size_is_not_known_is_empty(store: Store) -> None:
    record(store, wire.Sample(seq=1, at=NOON, gpus=(wire.GpuSample(gpu="9", used_bytes=5),)))
    assert store.series("gpu_used_bytes", {"node": "n1", "gpu": "9"}, NOON, NOON + 10, 10).max == (5,)
    assert store.series("gpu_used_ratio", {"node": "n1", "gpu": "9"}, NOON, NOON + 10, 10).times == ()


def test_a_gap_and_a_reading_that_failed_stay_gaps(store: Store) -> None:
    record(store, *samples([1, 1, None, None]), *samples([3, 3], first=8))
    found = store.series("gpu_used_bytes", GPU, NOON, NOON + 100, 2)
    assert found.times == tuple(NOON + at for at in (0, 2, 4, 6, 8))
    assert found.max == (MIB, None, None, None, 3 * MIB)
    assert found.min == found.mean == found.max


def test_a_step_shorter_than_the_pace_of_the_agent_is_raised_and_said(store: Store) -> None:
    record(store, hello(wire.NodeFacts(), interval_seconds=5.0))
    assert store.series("gpu_used_bytes", GPU, NOON, NOON + 60, 1).step_seconds == 10.0
    assert store.series("gpu_used_bytes", GPU, NOON, NOON + 60, 30).step_seconds == 30.0


def test_a_range_in_the_middle_of_a_merged_hour_is_cut_at_both_ends(store: Store) -> None:
    record(store, *samples(list(range(60))), *samples(list(range(60, 120)), first=60))
    store.compact(NOON + 86_400)
    found = store.series("gpu_used_bytes", GPU, NOON + 30, NOON + 33, 2)
    assert found.min == (30 * MIB, 32 * MIB)
    assert found.max == (31 * MIB, 33 * MIB)


def test_every_field_of_a_sample_is_the_series_of_its_name(store: Store) -> None:
    gpu = wire.GpuSample(
        gpu="0", used_bytes=8 * 2**20, utilization_ratio=0.97, power_watts=312.0, temperature_celsius=61.0,
        ecc_uncorrected_total=2,
    )  # fmt: skip
    host = wire.HostSample(
        memory_used_bytes=1024, cgroup_used_bytes=2048, swap_used_bytes=0, shm_used_bytes=4096,
        memory_pressure_some_ratio=0.25, memory_pressure_full_ratio=0.125,
    )  # fmt: skip
    record(store, wire.Sample(seq=1, at=NOON, gpus=(gpu,), host=host))
    expected = {
        "gpu_used_bytes": 8 * 2**20, "gpu_used_ratio": 0.1, "gpu_utilization_ratio": 0.97, "gpu_power_watts": 312.0,
        "gpu_temperature_celsius": 61.0, "gpu_ecc_uncorrected_total": 2,
    }  # fmt: skip
    for name, value in expected.items():
        assert store.series(name, GPU, NOON, NOON, 1).max == pytest.approx((value,)), name
    for name, value in msgspec.structs.asdict(host).items():
        if value is not None and name != "processes":
            assert store.series(f"host_{name}", {"node": "n1"}, NOON, NOON, 1).max == (value,), name


def test_every_figure_of_a_step_is_a_series_of_its_run(store: Store) -> None:
    figures = {
        "step_seconds": 100.0, "rollout_seconds": 60.0, "reshard_seconds": 2.5, "torch_reserved_peak_bytes": 70,
        "torch_allocated_peak_bytes": 60, "response_length_mean_tokens": 900.5, "response_length_max_tokens": 4096.0,
        "response_clip_ratio": 0.25, "rollout_ms_per_token": 0.5, "tokens_total": 1e6,
    }  # fmt: skip
    record(store, event(1, wire.Step(step=1, host_used_bytes=8, **figures)))  # type: ignore[arg-type]
    for name, value in {**figures, "trainer_host_used_bytes": 8}.items():
        for labels in ({"run": "r1"}, {"node": "n1"}, {"run": "r1", "node": "n1"}):
            assert store.series(name, labels, NOON, NOON + 60, 1).mean == (value,), name
        assert store.series(name, {"run": "r2"}, NOON, NOON + 60, 1).times == ()


def test_steps_are_no_gaps_apart_and_one_without_the_figure_is_no_point(store: Store) -> None:
    record(store, *(event(n, wire.Step(step=n, rollout_seconds=None if n == 2 else float(n))) for n in (1, 2, 3)))
    found = store.series("rollout_seconds", {"run": "r1"}, NOON, NOON + 60, 1)
    assert (found.times, found.mean, found.unit) == ((NOON + 10, NOON + 30), (1.0, 3.0), "seconds")


def test_a_step_read_again_is_no_second_point(store: Store) -> None:
    record(store, event(1, wire.Step(step=1, rollout_seconds=5.0)))
    record(store, event(9, wire.Step(step=1, rollout_seconds=5.0)), session="s2")
    assert store.series("rollout_seconds", {"run": "r1"}, NOON, NOON + 600, 1).times == (NOON + 10,)
    assert store.series("rollout_seconds", {"run": "r1"}, NOON + 50, NOON + 600, 1).times == ()


def test_torch_memory_is_found_by_run_and_by_gpu(store: Store) -> None:
    record(
        store,
        event(1, wire.TorchMemory(reserved_bytes=10, allocated_bytes=4, gpu="0")),
        event(2, wire.TorchMemory(reserved_bytes=10, gpu="0")),
        event(3, wire.TorchMemory(reserved_bytes=30, device_used_bytes=35, gpu="1"), run="r2"),
    )
    assert store.series("torch_reserved_bytes", GPU, NOON, NOON + 60, 1).mean == (10, 10)  # the same twice is two
    assert store.series("torch_reserved_bytes", {"node": "n1"}, NOON, NOON + 60, 1).mean == (10, 10, 30)
    assert store.series("torch_allocated_bytes", {"run": "r1"}, NOON, NOON + 60, 1).mean == (4,)
    assert store.series("torch_device_used_bytes", {"run": "r2", "gpu": "1"}, NOON, NOON + 60, 1).mean == (35,)


def probed(seq: int, *reserved: int | None, retries: int | None = None) -> wire.Sample:
    torch = tuple(
        wire.TorchSample(pid=pid, gpu="0", reserved_bytes=amount, allocated_bytes=1, alloc_retries_total=retries)
        for pid, amount in enumerate(reserved)
    )
    return wire.Sample(seq=seq, at=NOON + seq, gpus=(wire.GpuSample(gpu="0", used_bytes=90),), torch=torch)


def test_what_probes_say_is_the_sum_over_the_processes_of_the_gpu(store: Store) -> None:
    record(store, probed(1, 30, 12, retries=2), probed(2, 31, None), probed(3))
    assert store.series("torch_reserved_bytes", GPU, NOON, NOON + 60, 1).max == (42, 31)
    assert store.series("torch_allocated_bytes", GPU, NOON, NOON + 60, 1).max == (2, 2)
    assert store.series("torch_alloc_retries_total", GPU, NOON, NOON + 60, 1).max == (4,)
    assert store.series("gpu_used_bytes", GPU, NOON, NOON + 60, 2).max == (90, 90)
    store.compact(NOON + 86_400)
    assert store.series("torch_reserved_bytes", GPU, NOON, NOON + 60, 1).max == (42, 31)


def test_log_lines_fill_the_time_before_there_was_a_probe_and_are_not_mixed_in_after(store: Store) -> None:
    before, within, elsewhere = (
        event(1, wire.TorchMemory(reserved_bytes=10, gpu="0")),
        event(12, wire.TorchMemory(reserved_bytes=99, gpu="0")),
        event(13, wire.TorchMemory(reserved_bytes=77, gpu="1")),
    )
    record(store, before, msgspec.structs.replace(probed(2, 40), at=NOON + 100), within, elsewhere)
    found = store.series("torch_reserved_bytes", GPU, NOON, NOON + 600, 1)
    assert (found.times, found.max) == ((NOON + 10, NOON + 100), (10, 40))
    assert store.series("torch_reserved_bytes", {"run": "r1"}, NOON, NOON + 600, 1).max == (10, 99, 77)


def test_readings_from_before_there_were_probes_are_read_beside_newer_ones(store: Store) -> None:
    record(store, *samples([1, 2]))
    record(store, probed(10, 40))
    store.compact(NOON + 86_400)
    used = store.series("gpu_used_bytes", GPU, NOON, NOON + 1, 1)
    assert (used.min, used.max) == ((MIB,), (2 * MIB,))
    assert store.series("torch_reserved_bytes", GPU, NOON, NOON + 60, 1).max == (40,)
    assert [len(sample.gpus) for _, sample in store.recent_samples(NOON)] == [1, 1, 1]


def test_the_engines_of_a_node_are_its_fullest_cache_and_the_sums_of_their_queues(store: Store) -> None:
    engines = (
        wire.EngineSample(engine="vllm", address="a", kv_used_ratio=0.8125, requests_waiting=3, preemptions_total=2),
        wire.EngineSample(engine="vllm", address="b", kv_used_ratio=0.25, requests_waiting=4),
    )
    host = wire.HostSample(memory_used_bytes=5)
    record(
        store,
        wire.Sample(seq=1, at=NOON, host=host, engines=engines),
        wire.Sample(seq=2, at=NOON + 1, host=host),
    )
    node = {"node": "n1"}
    assert store.series("kv_cache_used_ratio", node, NOON, NOON + 60, 1).max == (0.8125,)
    assert store.series("engine_requests_waiting", node, NOON, NOON + 60, 1).max == (7,)
    assert store.series("engine_preemptions_total", node, NOON, NOON + 60, 1).max == (2,)
    assert store.series("host_memory_used_bytes", node, NOON, NOON + 1, 1).max == (5,)


def test_an_engine_that_is_asked_every_ten_seconds_has_no_gaps(store: Store) -> None:
    engine = wire.EngineSample(engine="vllm", address="a", kv_used_ratio=0.5)
    record(
        store,
        *(
            wire.Sample(seq=n + 1, at=NOON + n, host=wire.HostSample(), engines=(engine,) if n % 10 == 3 else ())
            for n in range(60)
        ),
    )
    found = store.series("kv_cache_used_ratio", {"node": "n1"}, NOON, NOON + 60, 1)
    assert (found.step_seconds, found.max) == (20.0, (0.5, 0.5, 0.5))


def test_an_unknown_name_is_answered_with_the_known_ones(store: Store) -> None:
    with pytest.raises(ValueError, match="gpu_usage") as caught:
        store.series("gpu_usage", GPU, NOON, NOON + 60, 1)
    assert all(name in str(caught.value) for name in SERIES)


@pytest.mark.parametrize(
    ("name", "labels", "wrong"),
    [
        ("gpu_used_bytes", {"node": "n1"}, "needs the labels node and gpu"),
        ("host_memory_used_bytes", {"gpu": "0"}, "needs the labels node"),
        ("rollout_seconds", {}, "needs the label run or node"),
        ("rollout_seconds", {"run": "r", "gpu": "0"}, "knows run, node"),
        ("torch_reserved_bytes", {"gpu": "0"}, "needs the label run or node, and knows run, node, gpu"),
    ],
)
def test_wrong_labels_are_refused_with_the_right_ones(
    store: Store, name: str, labels: dict[str, str], wrong: str
) -> None:
    with pytest.raises(ValueError, match=f'series "{name}": .*{wrong}'):
        store.series(name, labels, NOON, NOON + 60, 1)


def test_a_bad_range_is_refused_whatever_the_pace_of_the_agent(store: Store) -> None:
    with pytest.raises(ValueError, match="step must be more than 0"):
        store.series("gpu_used_bytes", GPU, NOON, NOON + 60, 0)
    with pytest.raises(ValueError, match="end must not be before start"):
        store.series("gpu_used_bytes", GPU, NOON, NOON - 60, 1)


def test_an_unknown_node_has_an_empty_history(store: Store) -> None:
    found = store.series("gpu_used_bytes", {"node": "nowhere", "gpu": "0"}, NOON, NOON + 60, 5)
    assert (found.times, found.min, found.max, found.mean, found.step_seconds) == ((), (), (), (), 5.0)


def test_the_disk_that_ray_spills_to_is_kept_beside_the_engines_and_without_them(store: Store) -> None:
    engine = wire.EngineSample(engine="vllm", address="a:1", kv_used_ratio=0.5)
    with_disk = wire.HostSample(memory_used_bytes=2**30, disk_used_bytes=2**41)
    record(
        store,
        wire.Sample(seq=1, at=NOON, host=wire.HostSample(memory_used_bytes=2**30), engines=(engine,)),
        wire.Sample(seq=2, at=NOON + 1, host=with_disk),
        wire.Sample(seq=3, at=NOON + 2, host=with_disk, engines=(engine,)),
    )
    hosts = [sample.host for _, sample in store.recent_samples(NOON)]
    assert [host.disk_used_bytes for host in hosts if host is not None] == [None, 2**41, 2**41]
    found = store.series("host_disk_used_bytes", {"node": "n1"}, NOON, NOON + 2, 1)
    assert found.max[-1] == 2**41


@on_sqlite
def test_what_was_stored_before_disks_were_kept_is_read_on(store: Store, tmp_path: Path) -> None:
    engine = wire.EngineSample(engine="vllm", address="a:1", kv_used_ratio=0.5)
    record(store, wire.Sample(seq=1, at=NOON, host=wire.HostSample(memory_used_bytes=2**30), engines=(engine,)))
    with contextlib.closing(sqlite3.connect(tmp_path / "oomwatch.db")) as file, file:
        (start_ms, blob) = file.execute("SELECT start_ms, blob FROM chunks").fetchone()
        whole = columns.unpack(start_ms, blob)
        older = columns.pack(columns.Columns(whole.at_ms, whole.values[: -len(columns.DISK_FIELDS)]))
        file.execute("UPDATE chunks SET blob = ?", (older,))
    (sample,) = (sample for _, sample in store.recent_samples(NOON))
    assert sample.host == wire.HostSample(memory_used_bytes=2**30)
    (whole_sample,) = (sample for _, sample in store.samples_in_order(NOON, NOON + 1, {"n1"}))
    assert [one.kv_used_ratio for one in whole_sample.engines] == [0.5]
