"""Tell a run step by step: what each phase has in use, on every GPU, and what its line and its probe say."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.core.story import GIB, Story

from oomwatch import wire
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.subject import Subject

PHASE_SECONDS = {"rollout": 6, "old_log_prob": 6, "update_actor": 6}
STEP_SECONDS = sum(PHASE_SECONDS.values())
MAX_RESPONSE = "data.max_response_length"


class Told(NamedTuple):
    """One step. In GiB: the phases, what is left when the engine sleeps, torch's slack; `more` of it on some GPUs."""

    rollout: float = 60.0
    old_log_prob: float = 30.0
    update_actor: float = 50.0
    more: Mapping[str, float] = {}
    residue: float | None = None
    slack: float | None = None
    retries_total: int | None = None
    length_mean: float | None = None
    length_max: float | None = None
    clip_ratio: float | None = None
    tokens_total: float | None = None


def tell(
    story: Story,
    number: int,
    told: Told,
    *,
    gpus: int = 1,
    roles: Mapping[str, str] | None = None,
    strangers: Mapping[str, float] | None = None,
) -> Story:
    """`strangers`: GiB of each GPU that a program of others has."""
    for phase, seconds in PHASE_SECONDS.items():
        level: float = getattr(told, phase)
        story.wait(seconds, lambda one, level=level: _read(one, level, told, gpus, roles or {}, strangers or {}))  # type: ignore[misc]
        if phase == "rollout" and told.residue is not None:
            story.event(wire.EngineSleep(gpu="0", still_used_bytes=int(told.residue * GIB)))
    return story.event(
        wire.Step(
            step=number,
            step_seconds=float(STEP_SECONDS),
            phase_seconds={phase: float(seconds) for phase, seconds in PHASE_SECONDS.items()},
            response_length_mean_tokens=told.length_mean,
            response_length_max_tokens=told.length_max,
            response_clip_ratio=told.clip_ratio,
            tokens_total=told.tokens_total,
        )
    )


def tell_all(story: Story, count: int, shape: Callable[[int], Told], *, first: int = 1, gpus: int = 1) -> Story:
    """`count` steps of which `shape` says what each is."""
    for number in range(first, first + count):
        tell(story, number, shape(number), gpus=gpus)
    return story


def configure(story: Story, **more: wire.ConfigValue) -> Story:
    """Settings by their keys, a dot written as two underscores."""
    return story.event(wire.Config(values={key.replace("__", "."): value for key, value in more.items()}))


def gpu_of(story: Story, gpu: str = "0") -> GpuRecord:
    record = story.engine.fleet.gpu(Subject("gpu", "n", gpu))
    assert record is not None
    return record


def _read(
    story: Story, gib: float, told: Told, gpus: int, roles: Mapping[str, str], strangers: Mapping[str, float]
) -> None:
    samples = []
    for gpu in map(str, range(gpus)):
        used = int((gib + told.more.get(gpu, 0.0)) * GIB)
        processes = [wire.GpuProcess(pid=10 + int(gpu), run="r", rank=int(gpu), role=roles.get(gpu, "actor"))]
        if gpu in strangers:
            processes.append(wire.GpuProcess(pid=99, used_bytes=int(strangers[gpu] * GIB)))
        samples.append(wire.GpuSample(gpu=gpu, used_bytes=used, processes=tuple(processes)))
    story.sample(*samples, torch=_torch(gib, told))


def _torch(gib: float, told: Told) -> tuple[wire.TorchSample, ...]:
    if told.slack is None and told.retries_total is None:
        return ()
    reserved, slack = int(gib * GIB) - GIB, int((told.slack or 0.0) * GIB)
    return (
        wire.TorchSample(
            pid=10,
            gpu="0",
            run="r",
            reserved_bytes=reserved,
            allocated_bytes=reserved - slack,
            alloc_retries_total=told.retries_total,
        ),
    )
