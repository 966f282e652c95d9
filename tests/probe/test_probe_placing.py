"""From what a process calls its device to the label that everybody uses: what the sampler makes of a reading."""

from collections.abc import Mapping

import pytest

from oomwatch import wire
from oomwatch_agent.sampler import Collected, Sampler
from oomwatch_agent.source import Found, Reading

GIB = 1024**3
UUIDS = {
    "0": "GPU-7f3c9a10-1111-2222-3333-444455556666",
    "1": "GPU-8a3c9a10-1111-2222-3333-444455556666",
    "2:0": "MIG-9b3c9a10-1111-2222-3333-444455556666",
}
GPUS = tuple(wire.GpuFacts(gpu=gpu, uuid=uuid, name="H100", total_bytes=80 * GIB) for gpu, uuid in UUIDS.items())
PID = 7


class FakeSource:
    def __init__(self, name: str, facts: wire.NodeFacts, reading: Reading) -> None:
        self.name, self._facts, self._reading = name, facts, reading

    def open(self) -> wire.NodeFacts:
        return self._facts

    def read(self, *, slow: bool) -> Reading:  # noqa: ARG002 - the seam's shape
        return self._reading

    def close(self) -> None:
        """Nothing is open."""


def _collected(
    reading: Reading,
    table: Mapping[str, tuple[int, ...]] | None = None,
    *,
    gpus: tuple[wire.GpuFacts, ...] = GPUS,
) -> Collected:
    """What the sampler makes of it, where the driver's tables name these processes on the GPUs."""
    samples = tuple(
        wire.GpuSample(
            gpu=gpu.gpu,
            processes=tuple(wire.GpuProcess(pid=pid, used_bytes=GIB) for pid in (table or {}).get(gpu.gpu, ())),
        )
        for gpu in gpus
    )
    sources = [
        FakeSource("nvml", wire.NodeFacts(gpus=gpus), Reading(gpus=samples)),
        FakeSource("probe", wire.NodeFacts(), reading),
    ]
    sampler = Sampler(sources, run="told by --run", answer_within_seconds=10.0, environment=lambda _: None)
    try:
        return sampler.collect(1.0, slow=False)
    finally:
        sampler.close()


def _torch(gpu: str | None, run: str | None = None) -> Reading:
    return Reading(torch=(wire.TorchSample(pid=PID, gpu=gpu, run=run, reserved_bytes=GIB),))


@pytest.mark.parametrize(
    ("device", "table", "label"),
    [
        ("8a3c9a10-1111-2222-3333-444455556666", {"0": (PID,)}, "1"),  # as torch writes it: certain
        ("9b3c9a10-1111-2222-3333-444455556666", {}, "2:0"),
        ("GPU-8a3c9a10", {}, "1"),  # as CUDA_VISIBLE_DEVICES may have it
        ("1", {}, "1"),
        ("0", {"1": (PID,)}, "1"),  # a container's first GPU is the node's second
        ("9", {}, None),
        (None, {"1": (PID,)}, "1"),
        (None, {"1": (PID,), "0": (PID,)}, None),  # on two GPUs: which of them is not known
        (None, {}, None),
        ("ffffffff-0000-0000-0000-000000000000", {}, None),  # a GPU that this agent does not see
        ("ffffffff-0000-0000-0000-000000000000", {"0": (PID,)}, "0"),
    ],
)
def test_a_device_gets_its_label(device: str | None, table: dict[str, tuple[int, ...]], label: str | None) -> None:
    (placed,) = _collected(_torch(device), table).sample.torch
    assert (placed.gpu, placed.reserved_bytes) == (label, GIB)


@pytest.mark.parametrize("device", [None, "5"])
def test_where_there_is_one_gpu_it_is_that_one(device: str | None) -> None:
    (placed,) = _collected(_torch(device), gpus=GPUS[:1]).sample.torch
    assert placed.gpu == "0"


def test_a_sample_without_a_run_gets_the_agents() -> None:
    assert _collected(_torch("1")).sample.torch[0].run == "told by --run"


def test_an_introduction_names_labels() -> None:
    probe = wire.Probe(door="verl.plugins", gpus=(UUIDS["1"].removeprefix("GPU-"), "strange"))
    found = Found(body=probe, origin=wire.Origin(source="probe", pid=PID), run="qwen")
    (event,) = _collected(Reading(found=(found,))).events
    assert event.body == wire.Probe(door="verl.plugins", gpus=("1",))
