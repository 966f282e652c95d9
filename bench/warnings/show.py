"""One run, and all that our rules said of it: what to read when a figure surprises."""

from collections.abc import Iterator
from pathlib import Path

from bench.warnings import scenarios
from bench.warnings.scenarios import Made
from bench.warnings.shapes import GIB
from bench.warnings.simulate import truth_of
from bench.warnings.tell import lines

from oomwatch import wire
from oomwatch.advice import advise
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.trace import TraceWriter, give


def show(scenario: str, seed: int, rules: RuleSet, trace: Path | None) -> Iterator[str]:
    """Lines of text. With `trace` the run is written down as well, for `oomwatch replay` and `oomwatch backtest`."""
    made = scenarios.make(scenario, seed)
    yield from _of_run(made)
    writer = TraceWriter(trace) if trace else None
    engine = Engine(rules)
    for line in lines(made.spec, made.story):
        for transition in give(engine, line):
            yield from _of_transition(advise(transition, engine.fleet), _step_at(made, transition.at))
        if writer is not None and line.message is not None:
            writer.observe(line.message, line.node or "", line.now or 0.0)
        elif writer is not None and line.advance is not None:
            writer.advance(line.advance)
    if writer is not None:
        writer.close()
    yield from (f"defect: {defect.rule} of {defect.subject}: {defect.error!r}" for defect in engine.defects)


def _of_run(made: Made) -> Iterator[str]:
    spec, truth = made.spec, truth_of(made.spec, made.story)
    told = ", ".join(name for name, is_told in spec.tells._asdict().items() if is_told) or "samples alone"
    yield f"{spec.run}: {spec.model.name} on {truth.gpus} x {spec.card.name}; told: {told}"
    yield f"  truth: {truth.cause or 'healthy'}, from step {spec.onset}; {truth.steps} steps, {truth.seconds:.0f} s"
    if truth.fails:
        yield f"  fails at {truth.oom_at:.0f} s, in step {truth.oom_step}, {truth.phase}, GPU {truth.gpu}"
    peaks: dict[str, float] = {}
    for stretch in made.story.stretches:
        used = max(level.used for levels in stretch.levels for level in levels)
        peaks[stretch.phase] = max(peaks.get(stretch.phase, 0.0), used / spec.card.usable_bytes)
    yield "  peaks: " + ", ".join(f"{phase} {share:.0%}" for phase, share in peaks.items())


def _step_at(made: Made, at: float) -> int:
    return 1 + sum(one.at <= at for one in made.story.finished)


def _of_transition(one: wire.Transition, step: int) -> Iterator[str]:
    facts = ", ".join(f"{name} {_plain(value)}" for name, value in one.facts.items())
    where = f"GPU {one.labels['gpu']}" if "gpu" in one.labels else "node" if "node" in one.labels else "run"
    yield f"{one.at:7.0f} s step {step:3}  {one.alert}/{one.severity} {one.state} ({one.change}) {where}: {facts}"
    if one.state != "firing" or one.change in ("outcome", "acts"):
        return
    for cause in one.causes:
        keys = ", ".join(evidence.key for evidence in cause.evidence)
        yield f"{'':20}cause {cause.score:.2f} {cause.cause}{f' in {cause.phase}' if cause.phase else ''}: {keys}"
    yield from (f"{'':20}remedy {remedy.remedy}: {remedy.override or '-'}" for remedy in one.remedies)


def _plain(value: wire.Fact) -> str:
    if isinstance(value, str):
        return value
    return f"{value / GIB:.2f} GiB" if abs(value) > GIB / 100 else f"{value:.4g}"
