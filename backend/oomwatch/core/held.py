"""The verdict of a condition that looks at steps: worked out once a step, and not given up at the first quiet one."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.memo import Memo
from oomwatch.core.peaks import GpuStep
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict

QUIET_STEPS = 10  # so many in a row say that it is over
OVER_SECONDS, OVER_STEPS = 3600.0, 10  # a run that tells of no step for longer than both has ended, or hangs


class _Held(NamedTuple):
    verdict: Verdict
    quiet: int  # steps since it was so
    segment: int


def held(memo: Memo, key: Hashable, last: GpuStep | StepRecord, judge: Callable[[], Verdict]) -> Verdict:
    """What `judge` says at the last step, or its last active verdict while fewer than QUIET_STEPS have been quiet.

    A restart of the run ends it: other settings, other memory. While too little is known (unknown) nothing ends: the
    server has started again, and has yet to see the steps that the alert came from.
    """

    def work_out() -> _Held:
        before, verdict = memo.last(key), judge()
        if verdict.state == "active" or not isinstance(before, _Held):
            return _Held(verdict, 0, last.segment)
        goes_on = before.segment == last.segment
        if goes_on and before.verdict.state == "active" and before.quiet + 1 < QUIET_STEPS:
            return before._replace(quiet=before.quiet + 1)
        has_been_known = before.verdict.state != "unknown" or not goes_on
        is_over = has_been_known and verdict.state == "unknown"
        return _Held(INACTIVE if is_over else verdict, 0, last.segment)

    return memo.once(key, last.at, work_out).verdict


def last_active(memo: Memo, key: Hashable) -> Verdict | None:
    """What was so at the step before: `judge` may ask, to be slower to give up than to begin."""
    before = memo.last(key)
    return before.verdict if isinstance(before, _Held) and before.verdict.state == "active" else None


def held_on(gpu: GpuRecord, key: Hashable, now: float, judge: Callable[[], Verdict]) -> Verdict:
    """The same of a GPU, unless its program is gone: then nothing is the matter any more."""
    if not gpu.steps:
        return UNKNOWN
    last = gpu.steps[-1]
    return INACTIVE if _is_over(gpu, last, now) else held(gpu.memo, key, last, judge)


def held_in_run(
    fleet: Fleet, subject: Subject, key: Hashable, now: float, judge: Callable[[Fleet, GpuRecord, RunRecord], Verdict]
) -> Verdict:
    """The same of a GPU that a run has, once both are known."""
    gpu, run = fleet.gpu(subject), fleet.run_record(subject)
    if gpu is None or run is None:
        return UNKNOWN
    return held_on(gpu, key, now, lambda: judge(fleet, gpu, run))


def _is_over(gpu: GpuRecord, last: GpuStep, now: float) -> bool:
    return gpu.is_left or now - last.at > max(OVER_SECONDS, OVER_STEPS * (last.seconds or 0.0))
