"""What the steps of a run were on one GPU: readings are gathered until the step's line comes, and cut then."""

from collections.abc import Mapping, Sequence

from oomwatch.core.allocator import Allocator
from oomwatch.core.envelope import SLICES_FEW, SLICES_MAX, Envelope, Extremes
from oomwatch.core.likemoments import READINGS_FEW, Tables, held_in
from oomwatch.core.peaks import Figures, GpuStep, PhaseMemory
from oomwatch.core.phases import UNCERTAIN_SECONDS, Span
from oomwatch.core.steps import StepRecord

STEPS_KEPT = 64  # twice the longest window that a rule looks back
KEEP_SECONDS = 5.0  # readings from before a cut's end that may belong to the next step


class _Gathered:
    """torch's figures, the engine's residue and the processes' sizes since the last cut."""

    def __init__(self, retries_before: int | None = None, tables: Tables | None = None) -> None:
        self.reserved_peak_bytes: float | None = None
        self.allocated_peak_bytes: float | None = None
        self.allocated_floor_bytes: float | None = None
        self.slack_bytes: float | None = None
        self.residue_bytes: float | None = None
        self.asleep_bytes: float | None = None
        self.tables = Tables() if tables is None else tables  # which may be empty
        self.sleeper: int | None = None  # the process that told of the residue
        self.retries_before = retries_before
        self.retries_now = retries_before

    def retries(self) -> int | None:
        """How often the allocator flushed its cache. A total that fell is of another process: it began at zero."""
        if self.retries_now is None or self.retries_before is None:
            return None
        risen = self.retries_now - self.retries_before
        return risen if risen >= 0 else self.retries_now


class GpuSteps:
    """The last steps of one GPU, oldest first, and what has been read of the step that runs.

    Until the first of them is told there is little room: most likely none ever will be. If it is, and took longer than
    that room, it is cut more coarsely, its beginning most, which a first step can be: it is no measure for the others.
    """

    def __init__(self) -> None:
        self.kept: list[GpuStep] = []
        self._envelope = Envelope(SLICES_FEW)
        self._gathered = _Gathered(tables=Tables(READINGS_FEW))
        self._sleeper: int | None = None  # of the last steps

    @property
    def asleep_now_bytes(self) -> float | None:
        """The same of the trainer's memory lines."""
        return self._gathered.asleep_bytes

    @property
    def residue_now_bytes(self) -> float | None:
        """The residue of the step that runs, if the same process told those of the steps before."""
        now = self._gathered
        return now.residue_bytes if now.sleeper == self._sleeper else None

    def read(self, at: float, used_bytes: float) -> None:
        """A reading of device memory."""
        self._envelope.add(at, used_bytes)

    def read_all(self, times: Sequence[float], used_bytes: Sequence[float]) -> None:
        """Several of them."""
        self._envelope.extend(times, used_bytes)

    def read_torch(self, sums: Allocator, in_use_bytes: float | None) -> None:
        """A reading of torch's allocator, with the device memory in use at that moment.

        While torch counts more than the device has in use, it counts the pages of a sleeping engine, and its slack
        says nothing.
        """
        now, reserved, allocated = self._gathered, sums.reserved_bytes, sums.allocated_bytes
        now.reserved_peak_bytes = _higher(now.reserved_peak_bytes, reserved)
        now.allocated_peak_bytes = _higher(now.allocated_peak_bytes, allocated)
        now.allocated_floor_bytes = _lower(now.allocated_floor_bytes, allocated)
        if sums.alloc_retries_total is not None:
            now.retries_now = sums.alloc_retries_total
            if now.retries_before is None:
                now.retries_before = sums.alloc_retries_total
        if reserved is not None and allocated is not None and (in_use_bytes is None or reserved <= in_use_bytes):
            now.slack_bytes = _lower(now.slack_bytes, float(max(0, reserved - allocated)))

    def read_asleep(self, used_bytes: float) -> None:
        """Device memory in use at a point of the program at which its engine sleeps."""
        self._gathered.asleep_bytes = _higher(self._gathered.asleep_bytes, used_bytes)

    def read_residue(self, still_used_bytes: float, pid: int | None = None) -> None:
        """What was still in use when the rollout engine of that process had gone to sleep."""
        self._gathered.residue_bytes = _higher(self._gathered.residue_bytes, still_used_bytes)
        self._gathered.sleeper = pid

    def read_parts(self, at: float, held_bytes: Mapping[str, float]) -> None:
        """What each kind of process holds."""
        self._gathered.tables.add(at, held_bytes)

    def cut(self, record: StepRecord, spans: Sequence[Span], lifetime_peak_bytes: float | None) -> GpuStep:
        """The step is over: `spans` are its phases, oldest first."""
        step, gathered = record.step, self._gathered
        start = spans[0].start if spans else record.at - (step.step_seconds or 0.0)
        end = spans[-1].end if spans else record.at
        whole = self._envelope.between(start, end)
        read = Figures(
            peak_bytes=whole.high if whole else None,
            floor_bytes=whole.low if whole else None,
            reserved_peak_bytes=gathered.reserved_peak_bytes,
            allocated_peak_bytes=gathered.allocated_peak_bytes,
            allocated_floor_bytes=gathered.allocated_floor_bytes,
            slack_bytes=gathered.slack_bytes,
            lifetime_peak_bytes=lifetime_peak_bytes,
            residue_bytes=gathered.residue_bytes,
            asleep_bytes=gathered.asleep_bytes,
        )
        held = held_in(gathered.tables.within(start, end), spans)
        finished = GpuStep.of(record, read, phases=self._phases(spans), held=held, retries=gathered.retries())
        self.kept.append(finished)
        del self.kept[:-STEPS_KEPT]
        self._envelope.slices_max = SLICES_MAX
        self._envelope.drop_before(end - KEEP_SECONDS)
        if gathered.residue_bytes is not None:
            self._sleeper = gathered.sleeper
        self._gathered = _Gathered(gathered.retries_now, gathered.tables.after(end))
        return finished

    def _phases(self, spans: Sequence[Span]) -> PhaseMemory:
        """Of each phase the highest and lowest reading in all its spans. Of one that is too short nothing is sure."""
        found: dict[str, Extremes] = {}
        for span in spans:
            margin = UNCERTAIN_SECONDS if span.how == "step line" else 0.0
            extremes = self._envelope.between(span.start + margin, span.end - margin)
            if extremes is None or span.phase == "idle":
                continue
            known = found.get(span.phase)
            found[span.phase] = extremes.with_(known) if known else extremes
        return PhaseMemory.of(found)

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self.kept = [one.moved(seconds) for one in self.kept]
        self._envelope.shift(seconds)
        self._gathered.tables.shift(seconds)


def _lower(known: float | None, told: float | None) -> float | None:
    return told if known is None else known if told is None else min(known, told)


def _higher(known: float | None, told: float | None) -> float | None:
    return told if known is None else known if told is None else max(known, told)
