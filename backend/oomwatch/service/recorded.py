"""The engine under a recorder: what it is given is written down first, so that a trace tells exactly what it knew."""

import time
from collections.abc import Collection, Sequence

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.lifecycle import Episode
from oomwatch.core.past import Past
from oomwatch.core.rule import RuleSet
from oomwatch.service.seams import Recorder


class RecordedEngine:
    """The calls of core.engine.Engine, explained there. Changes of rules are not recorded."""

    def __init__(self, rules: RuleSet, recorder: Recorder | None) -> None:
        self.engine = Engine(rules, stopwatch=time.perf_counter)
        self.recorder = recorder

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> list[wire.Transition]:
        if self.recorder is not None:
            self.recorder.observe(message, node, now)
        return self.engine.observe(message, node, now)

    def recall(self, message: wire.AgentMessage, node: str, now: float) -> None:
        if self.recorder is not None:
            self.recorder.recall(message, node, now)
        self.engine.recall(message, node, now)

    def remember(self, pasts: Sequence[Past]) -> None:
        if self.recorder is not None:
            self.recorder.remember(pasts)
        self.engine.remember(pasts)

    def advance(self, now: float) -> list[wire.Transition]:
        if self.recorder is not None:
            self.recorder.advance(now)
        return self.engine.advance(now)

    def restore(self, told: Sequence[wire.Transition], now: float) -> list[wire.Transition]:
        if self.recorder is not None:
            self.recorder.restore(told, now)
        return self.engine.restore(told, now)

    def follow(self, word: wire.Transition, now: float) -> None:
        if self.recorder is not None:
            self.recorder.follow(word, now)
        self.engine.follow(word, now)

    def replace_rules(self, rules: RuleSet, now: float) -> list[wire.Transition]:
        return self.engine.replace_rules(rules, now)

    def excuse_silence(self, seconds: float, nodes: Collection[str] | None = None) -> None:
        if self.recorder is not None:
            self.recorder.excuse_silence(seconds, nodes)
        self.engine.excuse_silence(seconds, nodes)

    def clock_jumped(self, seconds: float) -> None:
        if self.recorder is not None:
            self.recorder.clock_jumped(seconds)
        self.engine.clock_jumped(seconds)

    def retire(self, node: str, now: float) -> list[wire.Transition]:
        if self.recorder is not None:
            self.recorder.retire(node, now)
        return self.engine.retire(node, now)

    def forget(self, before: float) -> tuple[Sequence[str], Sequence[str]]:
        if self.recorder is not None:
            self.recorder.forget(before)
        return self.engine.forget(before)

    def episodes(self) -> list[Episode]:
        return self.engine.episodes()
