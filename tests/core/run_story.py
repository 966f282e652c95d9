"""A colocated run told second by second: its steps have phases, lengths, an engine that sleeps, and torch's figures."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.core.story import GIB, Story

from oomwatch import wire

SECONDS = {"rollout": 10, "old_log_prob": 6, "update_actor": 8, "update_weights": 4}


class Shape(NamedTuple):
    """What one step is, in GiB: what every phase holds, what each takes above it, and what is told of it."""

    base: float = 30.0
    peaks: Mapping[str, float] = {"rollout": 30.0, "old_log_prob": 20.0, "update_actor": 25.0, "update_weights": 5.0}
    residue: float | None = None
    allocated: float | None = None
    length: float | None = None


def tell_steps(story: Story, count: int, shape: Callable[[int], Shape], *, first: int = 1) -> Story:
    """So many steps, one after the other, each with its readings, its sleep line and at last its step line."""
    for number in range(first, first + count):
        one = shape(number)
        for phase, seconds in SECONDS.items():
            story.wait(seconds, lambda s, phase=phase, one=one: s.used(_used(one, phase, s.now)))  # type: ignore[misc]
            if phase == "rollout" and one.residue is not None:
                story.event(wire.EngineSleep(gpu="0", still_used_bytes=int(one.residue * GIB)))
        story.event(
            wire.Step(
                step=number,
                step_seconds=float(sum(SECONDS.values())),
                phase_seconds={phase: float(seconds) for phase, seconds in SECONDS.items()},
                torch_allocated_peak_bytes=None if one.allocated is None else int(one.allocated * GIB),
                torch_reserved_peak_bytes=None if one.allocated is None else int((one.allocated + 2) * GIB),
                response_length_mean_tokens=one.length,
                response_length_max_tokens=None if one.length is None else 2 * one.length,
            )
        )
    return story


def _used(shape: Shape, phase: str, now: float) -> float:
    """A phase works every other pair of seconds, so that both its floor and its peak are read."""
    return shape.base + (shape.peaks[phase] if now % 4 < 2 else 1.0)
