"""A source through the engine, exactly as live: what was said, and what became of the run."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.advice import advise
from oomwatch.core.engine import Engine
from oomwatch.core.rule import Override, Rule, RuleSet
from oomwatch.core.steps import SAME_STEP_SECONDS
from oomwatch.core.subject import Channel
from oomwatch.trace import Line, give

_OUT_OF_MEMORY: dict[type, Channel] = {wire.DeviceOom: "device", wire.HostOom: "host"}
Progress = Callable[[float], None]  # is told the seconds that have passed in the input


class Watched:
    """What an input shows of itself: its length, its steps, whether it ran out of memory. Fed with its lines."""

    def __init__(self, *, with_readings: bool = False) -> None:
        self.began_at: float | None = None
        self.ended_at = 0.0
        self.step_times: list[float] = []  # when each training step ended
        self.oom_at: float | None = None
        self.oom_of: Channel | None = None  # what ran out
        self.gpus: dict[str, int] = {}  # "node/gpu" -> usable bytes
        self.readings: dict[str, list[tuple[float, int]]] = {}
        self._with_readings = with_readings
        self._last_steps: dict[str | None, tuple[int, float]] = {}  # of each run: number and time

    def see(self, line: Line) -> None:
        at = line.now if line.now is not None else line.advance
        if at is None:
            return
        self.began_at = at if self.began_at is None else self.began_at
        self.ended_at = max(self.ended_at, at)
        if line.message is not None and not line.recalled:
            self._see_message(line.message, line.node or "", at)

    def _see_message(self, message: wire.AgentMessage, node: str, at: float) -> None:
        if isinstance(message, wire.Hello):
            for facts in message.facts.gpus:
                self.gpus[f"{message.node}/{facts.gpu}"] = facts.total_bytes - facts.reserved_bytes
        elif isinstance(message, wire.Sample) and self._with_readings:
            for gpu in message.gpus:
                if gpu.used_bytes is not None:
                    self.readings.setdefault(f"{node}/{gpu.gpu}", []).append((at, gpu.used_bytes))
        elif isinstance(message, wire.Event) and not message.backlog:
            self._see_event(message, at)

    def _see_event(self, event: wire.Event, at: float) -> None:
        body = event.body
        channel = _OUT_OF_MEMORY.get(type(body))
        if channel is not None and self.oom_at is None:
            self.oom_at, self.oom_of = at, channel
        if isinstance(body, wire.Step) and not body.validation_only:
            last = self._last_steps.get(event.run)
            self._last_steps[event.run] = (body.step, at)
            if last is None or last[0] != body.step or at - last[1] >= SAME_STEP_SECONDS:
                self.step_times.append(at)


class Driven(NamedTuple):
    watched: Watched
    transitions: list[wire.Transition]
    defects: list[str]  # of rules, one sentence each


def drive(
    lines: Iterator[Line], rules: RuleSet, *, live: bool, with_readings: bool = False, progress: Progress | None = None
) -> Driven:
    """Feed the lines to an engine with these rules."""
    engine = Engine(rules if live else without_silence(rules))
    watched = Watched(with_readings=with_readings)
    transitions: list[wire.Transition] = []
    for line in lines:
        watched.see(line)
        transitions += [advise(one, engine.fleet) for one in give(engine, line)]
        if progress is not None and watched.began_at is not None:
            progress(watched.ended_at - watched.began_at)
    defects = dict.fromkeys(f"{one.rule}: {one.error!r}" for one in engine.defects)
    return Driven(watched, transitions, list(defects))


def without_silence(rules: RuleSet) -> RuleSet:
    """The rules without conditions that time alone can make true: they tell of an agent's silence, and no agent spoke.

    With them gone, time in which nothing is pending or firing costs nothing (Engine.advance).
    """
    kept = [found for rule in rules.rules if (found := _heard(rule))]
    overrides = [
        Override(rule=found, node=one.node, run=one.run) for one in rules.overrides if (found := _heard(one.rule))
    ]
    return RuleSet(rules=tuple(kept), overrides=tuple(overrides))


def _heard(rule: Rule) -> Rule | None:
    when = tuple(condition for condition in rule.when if tuple(condition.hears) != ("time",))
    return msgspec.structs.replace(rule, when=when) if when else None
