"""The training steps of one run, and which of them say what is usual.

Not every step does: the first three compile and allocate, a step with validation alone trains nothing, and the first
step after a resume compiles again. A restart begins a new segment, whose settings may differ: what was usual before it
is no measure for what comes after.
"""

import itertools
from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from oomwatch import wire

STEPS_KEPT = 500
WARM_UP_STEPS = 3
RHYTHM_STEPS = 5  # the pace of a run is the median of this many steps


class StepRecord(NamedTuple):
    at: float  # when its line was read
    step: wire.Step
    segment: int  # counts restarts
    usual: bool  # whether it may say what is usual, and be held against it
    backlog: bool


class StepHistory:
    """The last steps of a run, oldest first."""

    def __init__(self) -> None:
        self._records: deque[StepRecord] = deque(maxlen=STEPS_KEPT)
        self._segment = 0
        self._pid: int | None = None
        self._rhythm: tuple[float | None] | None = None  # measured once after each step

    def __iter__(self) -> Iterator[StepRecord]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def add(self, at: float, step: wire.Step, *, pid: int | None, backlog: bool) -> StepRecord | None:
        """Take a step in; None where it is one that is known already (the same line, read twice)."""
        last = self._records[-1] if self._records else None
        if last is not None and last.step == step:
            return None
        resumed = last is not None and self._is_resume(last.step, step, pid)
        self._segment += resumed
        self._pid = pid or self._pid
        usual = not (resumed or step.validation_only or step.step <= WARM_UP_STEPS)
        record = StepRecord(at, step, self._segment, usual, backlog)
        self._records.append(record)
        self._rhythm = None
        return record

    def _is_resume(self, last: wire.Step, step: wire.Step, pid: int | None) -> bool:
        """A training step that comes again, or that another process prints. (Validation shares its step's number.)"""
        if last.validation_only or step.validation_only:
            return step.step < last.step
        return step.step <= last.step or (pid is not None and self._pid is not None and pid != self._pid)

    def segment(self) -> list[StepRecord]:
        """The training steps since the last restart, oldest first."""
        return [
            record for record in self._records if record.segment == self._segment and not record.step.validation_only
        ]

    def rhythm_seconds(self) -> float | None:
        """How long a step takes now: between lines where they were read live, else as the trainer timed it."""
        if self._rhythm is None:
            self._rhythm = (self._measure_rhythm(),)
        return self._rhythm[0]

    def _measure_rhythm(self) -> float | None:
        recent = self.segment()[-RHYTHM_STEPS - 1 :]
        live = [record.at for record in recent if not record.backlog]
        between = [later - earlier for earlier, later in itertools.pairwise(live)]
        if len(between) > 1:
            return median(between)
        timed = [record.step.step_seconds for record in recent if record.step.step_seconds is not None]
        return median(timed) if timed else None
