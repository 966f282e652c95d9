"""From what a process calls its device to the label that everybody uses, and into the sample."""

from collections.abc import Mapping
from typing import Any

import pytest

from oomwatch import wire
from oomwatch_agent.identify import Identifier
from oomwatch_agent.sampler import Sampler
from oomwatch_agent.source import Found, Reading

GIB = 1024**3
UUIDS = {
    "0": "GPU-7f3c9a10-1111-2222-3333-444455556666",
    "1": "GPU-8a3c9a10-1111-2222-3333-444455556666",
    "2:0": "MIG-9b3c9a10-1111-2222-3333-444455556666",
}
GPUS = tuple(wire.GpuFacts(gpu=gpu, uuid=uuid, name="H100", total_bytes=80 * GIB) for gpu, uuid in UUIDS.items())


def _sample(gpu: str | None, pid: int = 7, run: str | None = None) -> wire.TorchSample:
    return wire.TorchSample(pid=pid, gpu=gpu, run=run, reserved_bytes=GIB)


def _identifier(table: Mapping[str, tuple[int, ...]], gpus: tuple[wire.GpuFacts, ...] = GPUS) -> Identifier:
    identifier = Identifier()
    identifier.know_gpus(gpus)
    samples = [
        wire.GpuSample(gpu=gpu, processes=tuple(wire.GpuProcess(pid=pid, used_bytes=GIB) for pid in pids))
        for gpu, pids in table.items()
    ]
    identifier.see(samples, 0.0)
    return identifier


@pytest.mark.parametrize(
    ("device", "table", "label"),
    [
        ("8a3c9a10-1111-2222-3333-444455556666", {"0": (7,)}, "1"),  # as torch writes it: certain
        ("9b3c9a10-1111-2222-3333-444455556666", {}, "2:0"),
        ("GPU-8a3c9a10", {}, "1"),  # as CUDA_VISIBLE_DEVICES may have it
        ("1", {}, "1"),
        ("0", {"1": (7,)}, "1"),  # a container's first GPU is the node's second
        ("9", {}, None),
        (None, {"1": (7,)}, "1"),
        (None, {"1": (7,), "0": (7,)}, None),  # on two GPUs: which of them is not known
        (None, {}, None),
        ("ffffffff-0000-0000-0000-000000000000", {}, None),  # a GPU that this agent does not see
        ("ffffffff-0000-0000-0000-000000000000", {"0": (7,)}, "0"),
    ],
)
def test_a_device_gets_its_label(device: str | None, table: dict[str, tuple[int, ...]], label: str | None) -> None:
    assert _identifier(table).place_torch(_sample(device)).gpu == label


def test_where_there_is_one_gpu_it_is_that_one() -> None:
    identifier = _identifier({}, GPUS[:1])
    assert identifier.place_torch(_sample(None)).gpu == "0"
    assert identifier.place_torch(_sample("5")).gpu == "0"


def test_an_introduction_names_labels() -> None:
    probe = wire.Probe(door="verl.plugins", gpus=(UUIDS["1"].removeprefix("GPU-"), "strange"))
    found = Found(body=probe, origin=wire.Origin(source="probe", pid=7))
    placed = _identifier({}).place(found, 0.0, lambda _: None).body
    assert placed == wire.Probe(door="verl.plugins", gpus=("1",))


class FakeSource:
    def __init__(self, name: str, facts: wire.NodeFacts, reading: Reading) -> None:
        self.name, self._facts, self._reading = name, facts, reading

    def open(self) -> wire.NodeFacts:
        return self._facts

    def read(self, *, slow: bool) -> Reading:  # noqa: ARG002 - the seam's shape
        return self._reading

    def close(self) -> None:
        pass


def _collected(torch: tuple[wire.TorchSample, ...], *found: Found) -> Any:
    table = (wire.GpuProcess(pid=7, used_bytes=GIB),)
    gpus = Reading(gpus=(wire.GpuSample(gpu="0", processes=table), wire.GpuSample(gpu="1"), wire.GpuSample(gpu="2:0")))
    sources = [
        FakeSource("nvml", wire.NodeFacts(gpus=GPUS), gpus),
        FakeSource("probe", wire.NodeFacts(), Reading(torch=torch, found=found)),
    ]
    sampler = Sampler(sources, run="told by --run", answer_within_seconds=10.0, environment=lambda _: None)
    try:
        return sampler.collect(1.0, slow=False)
    finally:
        sampler.close()


def test_the_sample_carries_torch_with_labels_and_runs() -> None:
    torch = (_sample(UUIDS["1"].removeprefix("GPU-"), run="qwen"), _sample(None, pid=7), _sample("9", pid=8))
    placed = _collected(torch).sample.torch
    assert [(sample.gpu, sample.run) for sample in placed] == [
        ("1", "qwen"),
        ("0", "told by --run"),
        (None, "told by --run"),
    ]


def test_a_process_that_introduces_itself_is_known_by_its_run_from_then_on() -> None:
    found = Found(body=wire.Probe(door="import"), origin=wire.Origin(source="probe", pid=7), run="qwen")
    identifier = _identifier({"0": (7,)})
    identifier.place(found, 0.0, lambda _: None)
    named = identifier.name_runs(wire.GpuSample(gpu="0", processes=(wire.GpuProcess(pid=7),)))
    assert named.processes == (wire.GpuProcess(pid=7, run="qwen"),)
