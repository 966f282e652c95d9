"""What is kept of a GPU is bounded: a site has thousands."""

import functools
import tracemalloc

import pytest

from oomwatch import wire
from oomwatch.core.allocator import Allocator
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.memo import Keeping
from oomwatch.core.phases import Span
from oomwatch.core.steps import StepRecord

GIB = 2**30
KIB_MOST = {True: 80, False: 24}  # by whether its run tells of steps
KIB_FEWEST = 8  # less would mean that nothing was kept, and so that nothing is measured
READ_SECONDS, STEP_SECONDS, WATCHED_SECONDS = 10, 60, 7 * 3600
PHASES = ("rollout", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor")


def watched(until: int, *, tells_steps: bool) -> GpuRecord:
    """A GPU that was read every ten seconds, by a probe too; its run finishes a step of eight phases each minute."""
    gpu = GpuRecord("n", wire.GpuFacts(gpu="0", uuid="u", name="H100", total_bytes=80 * GIB), Keeping())
    for at in range(READ_SECONDS, until, READ_SECONDS):
        used = 40 * GIB + at
        processes = (wire.GpuProcess(pid=1, used_bytes=used, name="ray::WorkerDict", run="r"),)
        gpu.observe(wire.GpuSample(gpu="0", used_bytes=used, processes=processes), float(at))
        gpu.observe_probe(Allocator(used - GIB, used - 2 * GIB, at), float(at))
        if tells_steps and at % STEP_SECONDS == 0:
            gpu.finish_step("r", step_of(at), spans_of(at), None)
    return gpu


@functools.cache  # it is the run's, and the same for all of its GPUs
def step_of(at: int) -> StepRecord:
    told = wire.Step(step=at // STEP_SECONDS, step_seconds=float(STEP_SECONDS), tokens_total=1000.0 + at)
    return StepRecord(float(at), told, segment=0, usual=True, backlog=False)


def spans_of(at: int) -> list[Span]:
    begun, each = at - STEP_SECONDS, STEP_SECONDS / len(PHASES)
    return [
        Span(begun + each * place, begun + each * (place + 1), phase, at // STEP_SECONDS, "mark")
        for place, phase in enumerate(PHASES)
    ]


@pytest.mark.parametrize("tells_steps", [True, False])
def test_a_gpu_that_was_watched_for_hours_takes_little(tells_steps: bool) -> None:
    watched(WATCHED_SECONDS, tells_steps=tells_steps)  # what is made once for all
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        gpu = watched(WATCHED_SECONDS, tells_steps=tells_steps)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bool(gpu.steps) is tells_steps
    assert KIB_FEWEST < (after - before) / 1024 < KIB_MOST[tells_steps]
