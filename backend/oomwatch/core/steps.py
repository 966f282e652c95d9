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

from msgspec import structs

from oomwatch import wire

STEPS_KEPT = 500
WARM_UP_STEPS = 3
RHYTHM_STEPS = 5  # the pace of a run is the median of this many steps
SAME_STEP_SECONDS = 30.0  # a step that comes again sooner is told by another process or file; a resume takes longer


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
        self._pids: set[int] = set()  # that print step lines in this segment
        self._rhythm: tuple[float | None] | None = None  # measured once after each step

    def __iter__(self) -> Iterator[StepRecord]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def restarts(self) -> int:
        """How often the run was seen to begin again."""
        return self._segment

    def add(
        self, at: float, step: wire.Step, *, pid: int | None, backlog: bool, anew: bool = False
    ) -> StepRecord | None:
        """Take a step in; None where it is one that is known already, to which it may add figures.

        `anew`: the run is known to have started again.
        """
        last = self._records[-1] if self._records else None
        if last is not None and self._is_told_again(last, at, step):
            self._pids |= {pid} if pid else set()
            self._records[-1] = last._replace(step=_filled(last.step, step))
            return None
        resumed = last is not None and (anew or self._is_resume(last.step, step, pid))
        if resumed:
            self._segment += 1
            self._pids = set()
        self._pids |= {pid} if pid else set()
        usual = not (resumed or step.validation_only or step.step <= WARM_UP_STEPS)
        record = StepRecord(at, step, self._segment, usual, backlog)
        self._records.append(record)
        self._rhythm = None
        return record

    @staticmethod
    def _is_told_again(last: StepRecord, at: float, step: wire.Step) -> bool:
        """The same line read twice, or the same step told by another process (with other figures, or other digits)."""
        if last.step == step:
            return True
        same = last.step.step == step.step and last.step.validation_only == step.validation_only
        return same and abs(at - last.at) < SAME_STEP_SECONDS

    def _is_resume(self, last: wire.Step, step: wire.Step, pid: int | None) -> bool:
        """A training step that comes again, or that a new process prints. (Validation shares its step's number.)"""
        if last.validation_only or step.validation_only:
            return step.step < last.step
        return step.step <= last.step or (pid is not None and bool(self._pids) and pid not in self._pids)

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        moved = [record._replace(at=record.at + seconds) for record in self._records]
        self._records = deque(moved, maxlen=STEPS_KEPT)

    def last(self) -> StepRecord | None:
        """The latest record, whatever it is."""
        return self._records[-1] if self._records else None

    def usual_ends(self, count: int) -> list[float]:
        """When the last usual steps of this segment ended that were read live, of the last `count`; oldest first."""
        latest = itertools.islice(reversed(self._records), count)
        same = itertools.takewhile(lambda record: record.segment == self._segment, latest)
        return [record.at for record in same if record.usual and not record.backlog][::-1]

    def segment(self) -> list[StepRecord]:
        """The training steps since the last restart, oldest first."""
        return [
            record for record in self._records if record.segment == self._segment and not record.step.validation_only
        ]

    def warm_since(self) -> float:
        """When the last warm-up step of this segment ended; minus infinity where it was not seen."""
        warming = [record.at for record in self.segment() if record.step.step <= WARM_UP_STEPS]
        return warming[-1] if warming else float("-inf")

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


def _filled(known: wire.Step, told: wire.Step) -> wire.Step:
    """A step with the figures that another line of it adds."""
    empty = {name for name, value in structs.asdict(known).items() if value is None or value == {}}
    added = {name: value for name, value in structs.asdict(told).items() if name in empty and value not in (None, {})}
    return structs.replace(known, **added) if added else known
