"""What a run looks like to people: its steps, its phases, its configuration, and which of its signals are missing."""

from collections.abc import Iterable, Iterator

import msgspec

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.core.coverage import coverage_of
from oomwatch.core.phases import Span
from oomwatch.core.runrecord import RunRecord

PHASES_SECONDS = 600.0
STEPS_BACK = 2  # a step line cuts the step before it anew; two, since it may have ended a while ago


def run_view(run: RunRecord, steps: Iterable[wire.StepPoint], phases_since: float) -> wire.Run:
    """A run with the steps given, which may be all of them or the new ones only, and its phases since then."""
    return wire.Run(
        run=run.name,
        nodes=tuple(run.nodes),
        first_seen_at=run.first_seen_at,
        last_seen_at=run.last_seen_at,
        steps=tuple(steps),
        reshard_cycles_total=run.cycles_total(),
        reshard_marker=run.cycle_marker(),
        phases=tuple(phases(run, phases_since)),
        coverage=tuple(_in_words(one) for one in coverage_of(run.sights)),
        config=run.config,
        simulated=run.simulated,
    )


def steps_of(run: RunRecord) -> Iterator[wire.StepPoint]:
    """The steps that are kept in memory, oldest first."""
    return (wire.StepPoint(at=record.at, step=record.step) for record in run.steps)


def all_phases_since(run: RunRecord) -> float:
    """From when on a page that has just been opened is told the phases: ten minutes, or two steps."""
    return min(run.last_seen_at - PHASES_SECONDS, last_phases_since(run))


def last_phases_since(run: RunRecord) -> float:
    """From when on the phases may be other than they were told to be."""
    last = next(reversed(run.steps.segment()), None)
    return run.last_seen_at - (STEPS_BACK * _took_seconds(last.step) if last else PHASES_SECONDS)


def _took_seconds(step: wire.Step) -> float:
    """How long a step kept its run busy. Validation, and steps that print no time of their own, are in its phases."""
    return max(step.step_seconds or 0.0, sum(step.phase_seconds.values())) or PHASES_SECONDS


def phases(run: RunRecord, start: float, end: float = float("inf")) -> Iterator[wire.PhaseSpan]:
    """The spans that overlap [start, end], oldest first."""
    return (_span_view(span) for span in run.timeline.spans(start, end))


def _span_view(span: Span) -> wire.PhaseSpan:
    ended = span.end > span.start
    return wire.PhaseSpan(
        start_at=span.start,
        end_at=span.end if ended else None,
        phase=span.phase,
        step=span.step,
        known_by=span.how,
    )


def _in_words(coverage: wire.Coverage) -> wire.Coverage:
    if coverage.problem is None:
        return coverage
    key = f"coverage.problem.{coverage.problem}"
    texts = {language: say(key, language, step=coverage.step) for language in wire.LANGUAGES}
    return msgspec.structs.replace(coverage, texts=texts)
