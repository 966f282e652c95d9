"""Whose memory it is is kept over time: on a GPU and in a host, and what nobody told stays untold."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oomwatch import wire
from oomwatch.store import columns
from oomwatch.store.beside import NOTHING_OF_GPU, beside_gpus, beside_host
from oomwatch.store.columns import Columns
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_700_000_000.0 // 3600 * 3600
GPU, NODE = {"node": "n1", "gpu": "0"}, {"node": "n1"}
CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "core" / "memory_parts.json").read_text(encoding="utf-8")
)
COLUMNS = ("trainer", "probed", "engine", "other", "engine_reserved", "engine_allocated")


def sample_of(case: dict[str, Any], seq: int = 1, at: float = NOON) -> wire.Sample:
    gpu = {"gpu": "0", "used_bytes": case["used_bytes"]}
    if case["processes"] is not None:
        gpu["processes"] = case["processes"]
    told = {"seq": seq, "at": at, "gpus": [gpu], "torch": case["probes"]}
    return msgspec.convert(told, wire.Sample)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def record(store: Store, *messages: wire.AgentMessage) -> None:
    hello = wire.Hello(
        protocol=1,
        agent_version="0",
        node="n1",
        session="s",
        sent_at=NOON,
        interval_seconds=1.0,
        facts=wire.NodeFacts(),
    )
    entries = [Entry(node="n1", session="s", received_at=NOON, message=one) for one in (hello, *messages)]
    store.record(Batch(entries=tuple(entries)))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_gpu_is_held_by_its_trainers_its_engines_and_others(case: dict[str, Any]) -> None:
    row = beside_gpus(sample_of(case)).get("0", NOTHING_OF_GPU)
    held = {name: case["held"].get(name) for name in COLUMNS}
    assert {name: getattr(row, f"{name}_bytes") for name in COLUMNS} == held


def test_whose_memory_it_was_is_read_back_also_once_its_hour_is_merged(store: Store) -> None:
    samples = [sample_of(CASES[0], seq=1 + n, at=NOON + 20 * n) for n in range(3)]
    between = wire.Sample(seq=10, at=NOON + 50, gpus=(wire.GpuSample(gpu="0", used_bytes=99),))
    record(store, *samples, between)
    for _ in range(2):
        found = {name: store.series(name, GPU, NOON, NOON + 60, 1) for name in (
            "gpu_trainer_bytes", "gpu_probed_trainer_bytes", "gpu_engine_bytes", "gpu_other_bytes")}  # fmt: skip
        assert {name: one.mean for name, one in found.items()} == {
            "gpu_trainer_bytes": (40, 40, 40),
            "gpu_probed_trainer_bytes": (40, 40, 40),
            "gpu_engine_bytes": (20, 20, 20),
            "gpu_other_bytes": (5, 5, 5),
        }
        used = store.series("gpu_used_bytes", GPU, NOON, NOON + 60, 2).max
        assert [amount for amount in used if amount is not None] == [80, 80, 80, 99]
        while store.compact(NOON + 86_400):
            pass


def test_the_memory_of_an_engine_with_a_probe_can_be_told_from_the_trainers(store: Store) -> None:
    record(store, sample_of(CASES[3]))
    assert store.series("torch_reserved_bytes", GPU, NOON, NOON + 1, 1).max == (50,)
    assert store.series("torch_engine_reserved_bytes", GPU, NOON, NOON + 1, 1).max == (20,)
    assert store.series("torch_engine_allocated_bytes", GPU, NOON, NOON + 1, 1).max == (18,)


def test_what_no_table_told_is_absent_and_no_zero(store: Store) -> None:
    record(store, sample_of(CASES[7]), sample_of(CASES[5], seq=2, at=NOON + 1))
    assert store.series("gpu_trainer_bytes", GPU, NOON, NOON + 60, 1).mean == ()
    assert store.series("gpu_engine_bytes", GPU, NOON, NOON + 60, 1).mean == (0,)  # the second table had none


def test_a_blob_from_before_anybody_told_whose_memory_it_was_is_read_and_merged_with_a_newer_one() -> None:
    fields = columns.GPU_FIELDS + columns.TORCH_FIELDS + columns.HOLDER_FIELDS
    at = 1_700_000_000_000
    plain = columns.from_readings(columns.GPU_FIELDS, [(at, wire.GpuSample(gpu="0", used_bytes=7))])
    newer = columns.from_readings(columns.GPU_FIELDS, [(at + 1000, wire.GpuSample(gpu="0", used_bytes=8))])
    row = NOTHING_OF_GPU._replace(trainer_bytes=5)
    newer = columns.widened(newer, columns.TORCH_FIELDS + columns.HOLDER_FIELDS, {at + 1000: row})
    place = columns.field_index(fields, "trainer_bytes")
    assert columns.unpack(at, columns.pack(plain), only=[place]).values == ()
    both = columns.unpack(at, columns.pack(columns.merged([plain, newer])), only=[place])
    assert isinstance(both, Columns)
    assert [value == value for value in both.values[0]] == [False, True]  # noqa: PLR0124 - NaN is not itself


def test_what_is_told_beside_a_reading_that_is_missing_is_left_out() -> None:
    at = 1_700_000_000_000
    plain = columns.from_readings(columns.GPU_FIELDS, [(at, wire.GpuSample(gpu="0", used_bytes=7))])
    beside = {at + 1000: NOTHING_OF_GPU._replace(reserved_bytes=5)}
    assert columns.widened(plain, columns.TORCH_FIELDS, beside) == plain


def test_a_gpu_that_was_not_read_costs_nobody_what_its_probe_told(store: Store) -> None:
    """As where the driver does not answer for a moment, in which a probe tells all the same."""
    probe = wire.TorchSample(pid=7, gpu="0", reserved_bytes=5)
    silent = wire.Sample(seq=1, at=NOON, torch=(probe,))
    record(store, silent, wire.Sample(seq=2, at=NOON + 1, gpus=(wire.GpuSample(gpu="0", used_bytes=7),)))
    assert store.series("gpu_used_bytes", GPU, NOON, NOON + 60, 1).mean == (7,)


def test_what_probes_did_not_tell_is_no_reading_of_theirs_after_a_restart(store: Store) -> None:
    record(store, sample_of(CASES[1]))
    [(_, recalled)] = store.recent_samples(NOON)
    assert recalled.torch == ()
    assert [gpu.used_bytes for gpu in recalled.gpus] == [40]


def host(seq: int, *processes: tuple[str, int]) -> wire.Sample:
    listed = tuple(wire.HostProcess(pid=pid, name=name, rss_bytes=size) for pid, (name, size) in enumerate(processes))
    return wire.Sample(
        seq=seq,
        at=NOON + 20 * seq,
        host=wire.HostSample(memory_used_bytes=90, disk_used_bytes=3, processes=listed or None),
    )


def test_host_memory_is_kept_by_kind_of_process(store: Store) -> None:
    record(
        store,
        host(1, ("ray::TaskRunner.run", 30), ("ray::WorkerDict", 5), ("ray::WorkerDict", 6), ("VLLM::EngineCore", 7)),
        host(2),
        host(3, ("raylet", 2), ("python serve.py", 4)),
    )
    kinds = ("driver", "worker", "engine", "object_store", "other")
    found = {kind: store.series(f"host_{kind}_bytes", NODE, NOON, NOON + 60, 1).max for kind in kinds}
    assert found == {
        "driver": (30, None, 0), "worker": (11, None, 0), "engine": (7, None, 0), "object_store": (0, None, 2),
        "other": (0, None, 4),
    }  # fmt: skip
    assert store.series("host_disk_used_bytes", NODE, NOON, NOON + 60, 20).max == (3, 3, 3)
    assert [one.host and one.host.disk_used_bytes for _, one in store.recent_samples(NOON)] == [3, 3, 3]


def test_a_host_whose_processes_were_not_listed_holds_what_is_not_known() -> None:
    row = beside_host((), wire.HostSample(memory_used_bytes=5))
    assert (row.worker_bytes, row.driver_bytes) == (None, None)
