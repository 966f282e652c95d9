"""One run, made and shown to the detectors: what a worker process does."""

import time
from typing import NamedTuple

from bench.warnings import scenarios
from bench.warnings.detectors import detectors, select
from bench.warnings.report import Result
from bench.warnings.score import judge
from bench.warnings.simulate import truth_of
from bench.warnings.tell import lines

from oomwatch.core.rule import RuleSet


class Task(NamedTuple):
    scenario: str
    seed: int
    wanted: tuple[str, ...] = ()  # detectors, by how their names begin; empty: all
    rules: RuleSet | None = None  # other ones than those shipped


def measure(task: Task) -> Result:
    """Raises RuntimeError where the scenario gives no run for this seed."""
    started = time.process_time()
    spec, story = scenarios.make(task.scenario, task.seed)
    truth, told = truth_of(spec, story), list(lines(spec, story))
    chosen = select(detectors(task.rules), task.wanted)
    verdicts = {}
    for name, detector in chosen.items():
        seen = detector(told)
        verdicts[name] = judge(spec, story, truth, seen.episodes, seen.defects)
    return Result(task.scenario, task.seed, truth, verdicts, time.process_time() - started)
