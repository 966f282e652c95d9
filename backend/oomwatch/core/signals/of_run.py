"""Signals of a run: figures of its last step."""

from collections.abc import Callable

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.signals.signal import Signal
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Subject, Topic


def last_step(run: RunRecord | None, value_of: Callable[[wire.Step], float | None]) -> StepRecord | None:
    """The last training step since the last restart that has this value."""
    steps = run.steps.segment() if run else []
    return next((record for record in reversed(steps) if value_of(record.step) is not None), None)


def _rollout_seconds(step: wire.Step) -> float | None:
    return step.rollout_seconds


def _step_seconds(step: wire.Step) -> float | None:
    return step.step_seconds


def _reshard_step_ratio(step: wire.Step) -> float | None:
    if step.reshard_seconds is None or not step.step_seconds:
        return None
    return step.reshard_seconds / step.step_seconds


def _step_signal(unit: str, about: str, value_of: Callable[[wire.Step], float | None], topic: Topic) -> Signal:
    def read(fleet: Fleet, subject: Subject, _now: float) -> float | None:
        """Of the last step, unless it is one of those that warm up: their times say nothing."""
        record = last_step(fleet.runs.get(subject.name), value_of)
        return value_of(record.step) if record and record.usual else None

    def explain(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
        record = last_step(fleet.runs.get(subject.name), value_of)
        return {"step": record.step.step} if record else {}

    return Signal(("run",), unit, about, read, ("events",), ("step",), explain, step_value=value_of, topic=topic)


SIGNALS: dict[str, Signal] = {
    "rollout_seconds": _step_signal("seconds", "rollout time of the last step", _rollout_seconds, "speed"),
    "step_seconds": _step_signal("seconds", "duration of the last step", _step_seconds, "speed"),
    "reshard_step_ratio": _step_signal(
        "ratio", "share of the last step that the switch from training to rollout took", _reshard_step_ratio, "switch"
    ),
}
