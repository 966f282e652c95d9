"""What a run tells: for each signal where it comes from, or why it is missing and how to switch it on.

A monitor that shows nothing looks like a monitor that sees nothing wrong. So every signal that the rules and the page
rest on is listed, with its source, or with a problem: a key of the catalogue, which has the sentence in both languages.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from msgspec import structs

from oomwatch import wire

PROBE = "probe"
# Events that a run prints only at DEBUG level; after so many steps without one there will be none.
PATIENCE_STEPS = 2

# Why a signal is missing or poor. Each has its sentence in the catalogue: `coverage.problem.` and the word.
Problem: TypeAlias = Literal[
    "no_step_line",
    "not_in_step_line",
    "missing_since_step",
    "only_step_peaks",
    "no_torch_memory",
    "no_reshard_marker_but_timed",
    "no_reshard_marker",
    "phases_only_by_marks",
    "phases_only_afterwards",
    "no_phases",
    "no_config",
]


class Sight(NamedTuple):
    """When and how often something was seen, and where last."""

    source: str
    at: float
    times: int
    step: int | None = None  # the last step that had it


class Sights:
    """Everything that was seen of one run, by name: kinds of event, fields of the step line, the probe."""

    def __init__(self) -> None:
        self._sights: dict[str, Sight] = {}
        self.last_step: int | None = None

    def see(self, name: str, source: str, at: float, step: int | None = None) -> None:
        before = self._sights.get(name)
        latest = at if before is None else max(at, before.at)
        self._sights[name] = Sight(source, latest, (before.times if before else 0) + 1, step)

    def get(self, name: str) -> Sight | None:
        return self._sights.get(name)

    def observe(self, event: wire.Event) -> None:
        """Count an event, and of a step line each figure that it has."""
        source = event.origin.source if event.origin else ""
        body = event.body
        if not isinstance(body, wire.Step):
            self.see(str(body.__struct_config__.tag), source, event.at)
            return
        self.see("step", source, event.at, body.step)
        if body.validation_only:
            return
        self.last_step = body.step
        for name, value in structs.asdict(body).items():
            if name != "step" and value is not None and value != {}:
                self.see(f"step.{name}", source, event.at, body.step)


class Judged(NamedTuple):
    """A signal's source, or its problem; a substitute has both."""

    sight: Sight | None = None
    problem: Problem | None = None
    step: int | None = None


def coverage_of(sights: Sights) -> Iterator[wire.Coverage]:
    """Every signal of a run, in the order of _SIGNALS."""
    for name, judge in _SIGNALS.items():
        judged = judge(sights)
        sight = judged.sight
        yield wire.Coverage(
            signal=name,
            source=sight.source if sight else None,
            last_seen_at=sight.at if sight else None,
            count=sight.times if sight else 0,
            problem=judged.problem,
            step=judged.step,
        )


def _step_line(sights: Sights) -> Judged:
    sight = sights.get("step")
    return Judged(sight) if sight else Judged(problem="no_step_line")


def _field(name: str) -> Callable[[Sights], Judged]:
    """A figure of the step line: missing since a step, never there, or nothing to tell before the first line."""

    def judge(sights: Sights) -> Judged:
        sight, last = sights.get(f"step.{name}"), sights.last_step
        if sight is None:
            return Judged(problem="no_step_line" if last is None else "not_in_step_line")
        if last is not None and sight.step is not None and sight.step < last:
            return Judged(sight, "missing_since_step", sight.step + 1)
        return Judged(sight)

    return judge


def _torch_reserved(sights: Sights) -> Judged:
    for name in (PROBE, "torch_memory"):
        if sight := sights.get(name):
            return Judged(sight)
    peak = sights.get("step.torch_reserved_peak_bytes")
    return Judged(peak, "only_step_peaks" if peak else "no_torch_memory")


def _reshard(sights: Sights) -> Judged:
    if sight := sights.get("reshard"):
        return Judged(sight)
    timed, last = sights.get("step.reshard_seconds"), sights.last_step
    if timed is not None:
        return Judged(timed, "no_reshard_marker_but_timed")
    return Judged(problem="no_step_line" if last is None or last < PATIENCE_STEPS else "no_reshard_marker")


def _phases(sights: Sights) -> Judged:
    timed = sights.get("step.phase_seconds")
    marked = sights.get("torch_memory") or sights.get("engine_sleep") or sights.get("engine_wake")
    if timed is None:
        return Judged(marked, "phases_only_by_marks" if marked else "no_phases")
    return Judged(timed, None if marked else "phases_only_afterwards")


def _config(sights: Sights) -> Judged:
    sight = sights.get("config")
    return Judged(sight) if sight else Judged(problem="no_config")


_SIGNALS: dict[str, Callable[[Sights], Judged]] = {
    "step_line": _step_line,
    "rollout_seconds": _field("rollout_seconds"),
    "step_seconds": _field("step_seconds"),
    "response_length": _field("response_length_mean_tokens"),
    "torch_reserved": _torch_reserved,
    "reshard_cycles": _reshard,
    "phases": _phases,
    "config": _config,
}
