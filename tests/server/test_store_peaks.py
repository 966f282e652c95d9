"""What was seen between two samples is kept at its own time, so that a chart of any width shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0  # a full hour
GIB = 2**30
PLAIN = wire.HostSample(memory_used_bytes=40 * GIB, cgroup_used_bytes=30 * GIB)
SPIKED = wire.HostSample(
    memory_used_bytes=40 * GIB,
    memory_used_peak_bytes=70 * GIB,
    memory_used_peak_seconds_ago=0.25,
    cgroup_used_bytes=30 * GIB,
    cgroup_used_peak_bytes=60 * GIB,
    cgroup_used_peak_seconds_ago=0.5,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    yield opened
    opened.close()


def _record(store: Store, *samples: wire.Sample) -> None:
    hello = wire.Hello(
        protocol=1,
        agent_version="1",
        node="n1",
        session="s",
        sent_at=NOON,
        interval_seconds=1.0,
        facts=wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid="u", name="H100", total_bytes=80 * GIB),)),
    )
    told: tuple[wire.AgentMessage, ...] = (hello, *samples)
    entries = tuple(Entry(node="n1", session="s", received_at=NOON, message=one) for one in told)
    store.record(Batch(entries=entries))


def _sample(seq: int, gpu: wire.GpuSample, host: wire.HostSample = PLAIN) -> wire.Sample:
    return wire.Sample(seq=seq, at=NOON + seq, gpus=(gpu,), host=host)


def test_a_spike_between_two_samples_is_in_the_maximum_at_every_width(store: Store) -> None:
    calm = wire.GpuSample(gpu="0", used_bytes=20 * GIB, utilization_ratio=0.5)
    spiked = wire.GpuSample(
        gpu="0", used_bytes=20 * GIB, utilization_ratio=0.5, used_peak_bytes=79 * GIB, used_peak_seconds_ago=0.25
    )
    _record(store, *(_sample(seq, spiked if seq == 30 else calm) for seq in range(1, 100)))
    labels = {"node": "n1", "gpu": "0"}
    fine = store.series("gpu_used_bytes", labels, NOON, NOON + 99, 2.0)
    assert [at for at, value in zip(fine.times, fine.max, strict=True) if value == 79 * GIB] == [NOON + 28]
    wide = store.series("gpu_used_bytes", labels, NOON, NOON + 99, 100.0)
    assert (wide.max, wide.min) == ((79 * GIB,), (20 * GIB,))
    assert store.series("gpu_utilization_ratio", labels, NOON, NOON + 99, 100.0).mean == (0.5,)


def test_a_spike_belongs_to_the_hour_in_which_it_was(store: Store) -> None:
    spiked = wire.GpuSample(gpu="0", used_bytes=20 * GIB, used_peak_bytes=79 * GIB, used_peak_seconds_ago=1.5)
    _record(store, _sample(1, spiked))
    before = store.series("gpu_used_bytes", {"node": "n1", "gpu": "0"}, NOON - 60, NOON - 0.001, 60.0)
    assert before.max == (79 * GIB,)


def test_spikes_of_the_host_are_kept_each_by_itself(store: Store) -> None:
    calm = wire.GpuSample(gpu="0", used_bytes=20 * GIB)
    _record(store, _sample(1, calm), _sample(2, calm, SPIKED), _sample(3, calm))
    machine = store.series("host_memory_used_bytes", {"node": "n1"}, NOON, NOON + 10, 10.0)
    container = store.series("host_cgroup_used_bytes", {"node": "n1"}, NOON, NOON + 10, 10.0)
    assert (machine.max, machine.min) == ((70 * GIB,), (40 * GIB,))
    assert (container.max, container.min) == ((60 * GIB,), (30 * GIB,))
