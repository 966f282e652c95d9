"""What is known of one GPU: the latest, and the short windows that conditions ask for.

Like the records of a node and of a run it takes in what concerns it and decides nothing. With the lifecycles, records
are the only mutable state of the core, and the engine's alone.
"""

from collections.abc import Sequence

from oomwatch import wire
from oomwatch.core import notable
from oomwatch.core.allocator import Allocator, believed_ratio
from oomwatch.core.blocks import BlockWindow
from oomwatch.core.gpuwindows import GpuWindows
from oomwatch.core.hostmemory import highest
from oomwatch.core.memo import Keeping, Memo
from oomwatch.core.notable import Notable
from oomwatch.core.parts import Parts, kinds_on_gpu, of_gpu, sums
from oomwatch.core.peaks import GpuStep
from oomwatch.core.phases import Span
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Subject
from oomwatch.core.window import WINDOW_SECONDS_MAX, PeakWindow, Window

LEFT_RATIO = 0.5  # of the last step's floor: what is less is not the program's any more
TORCH_SLICE_SECONDS = 60.0  # the probe reads at 1-2 Hz; a trend needs no more than its peaks
PROBE_FRESH_SECONDS = 60.0  # while a probe tells, log lines of the same GPU are not mixed in


class GpuRecord:
    """One GPU. `sample` is the last reading that came with an answer, `at` its time; `status` is the last one told."""

    def __init__(self, node: str, facts: wire.GpuFacts, keeping: Keeping) -> None:
        self.subject = Subject("gpu", node, facts.gpu)
        self.describe(facts)
        self.sample: wire.GpuSample | None = None
        self.at = 0.0
        # The highest that was in use since the sample before the last one: what limits are held against. What is
        # compared with another figure of the same moment (torch's, a floor) is compared with `used_bytes`.
        self.highest_bytes: int | None = None
        self.status: wire.GpuStatus = "ok"
        self.processes: tuple[wire.GpuProcess, ...] | None = None  # None: never read
        self.parts = Parts()
        self._strangers: frozenset[int] = frozenset()  # processes beside those of its run, when they were last listed
        self.run: str | None = None
        self._windows = GpuWindows()
        self.torch_reserved = Window(WINDOW_SECONDS_MAX)
        self.probed_at = float("-inf")
        self.memo = Memo(keeping)
        self._steps_of: str | None = None  # the run whose steps they are
        self.notable: tuple[Notable, ...] = ()

    def describe(self, facts: wire.GpuFacts) -> None:
        """What its agent says it is. What programs can use of it is asked for at every reading."""
        self.facts = facts
        self.usable_bytes = max(0, facts.total_bytes - facts.reserved_bytes)

    @property
    def used_bytes(self) -> int | None:
        """Device memory in use, as last read."""
        return self.sample.used_bytes if self.sample else None

    @property
    def used_peaks(self) -> PeakWindow:
        """The highest readings of the last half hour."""
        return self._windows.used_peaks

    @property
    def blocks(self) -> BlockWindow:
        """Readings in blocks of five minutes."""
        return self._windows.blocks

    @property
    def steps(self) -> Sequence[GpuStep]:
        """What the last steps of its run were on this GPU, oldest first."""
        return self._windows.told_steps.kept

    @property
    def is_left(self) -> bool:
        """Whether the program whose steps these are has left the card since the last one."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.floor_bytes is None or self.used_bytes is None:
            return False
        return self.at > last.at and self.used_bytes < LEFT_RATIO * last.floor_bytes

    @property
    def steps_of(self) -> str | None:
        """The run whose steps these are."""
        return self._steps_of

    @property
    def residue_now_bytes(self) -> float | None:
        """What the engine left when it went to sleep in the step that runs."""
        return self._windows.told_steps.residue_now_bytes

    @property
    def asleep_now_bytes(self) -> float | None:
        """What memory lines of the step that runs tell of a moment when the engine sleeps."""
        return self._windows.told_steps.asleep_now_bytes

    def is_probed(self, at: float) -> bool:
        """Whether a probe tells of this GPU: then log lines are not mixed in."""
        return at - self.probed_at < PROBE_FRESH_SECONDS

    def observe_probe(self, told: Allocator, at: float) -> None:
        if told.reserved_bytes is None:
            return
        self.probed_at = max(self.probed_at, at)
        self._windows.told_steps.read_torch(told, self.used_bytes)
        ratio = believed_ratio(told.reserved_bytes, self.used_bytes, self.usable_bytes)
        if ratio is not None:
            self.torch_reserved.add_peak(at, ratio, TORCH_SLICE_SECONDS)

    def observe_line(self, memory: wire.TorchMemory, at: float) -> None:
        """A line of a process on this GPU told its memory: as good a reading as the driver's own."""
        steps = self._windows.steps
        if memory.device_used_bytes is not None:
            steps.read(at, memory.device_used_bytes)
            if memory.engine_asleep:
                steps.read_asleep(memory.device_used_bytes)
        if not self.is_probed(at):
            in_use = self.used_bytes if memory.device_used_bytes is None else memory.device_used_bytes
            steps.read_torch(Allocator(memory.reserved_bytes, memory.allocated_bytes), in_use)

    def observe_sleep(self, still_used_bytes: int, pid: int | None) -> None:
        self._windows.told_steps.read_residue(still_used_bytes, pid)

    def finish_step(self, run: str, record: StepRecord, spans: Sequence[Span], lifetime_bytes: float | None) -> None:
        """A step of its run is over. Steps of another run say nothing of this one."""
        if self._steps_of not in (None, run):
            self._windows.begin_other_steps()
        self._steps_of = run
        self._windows.steps.cut(record, spans, lifetime_bytes)

    def rename_run(self, old: str, new: str) -> None:
        """What it knows of a run's steps stays: it is the same run."""
        if self.run == old:
            self.run = new
        if self._steps_of == old:
            self._steps_of = new

    def shift(self, seconds: float) -> None:
        self.at += seconds
        self._windows.shift(seconds)
        self.probed_at += seconds
        self.torch_reserved.shift(seconds)
        self.notable = notable.moved(self.notable, seconds)

    def observe(self, sample: wire.GpuSample, at: float) -> bool:
        """Take a reading in. True: with it, a minute of readings is over."""
        self.status = sample.status
        if sample.processes is not None:
            self.processes = sample.processes
            self.run = next((process.run for process in sample.processes if process.run), self.run)
            told = kinds_on_gpu(sample.processes, self.run, self._strangers)
            self._strangers = frozenset(one.pid for one, kind in told if kind == "stranger")
            sizes = of_gpu(told)
            self.parts.observe(at, sizes)
            self._windows.told_steps.read_parts(at, sums(sizes))
        if sample.status != "ok" or sample.used_bytes is None:
            return False
        if at >= self.at:
            self.sample, self.at = sample, at
            self.highest_bytes = highest(sample.used_bytes, sample.used_peak_bytes)
        closed = False
        if sample.used_peak_bytes is not None:
            closed = self._windows.add(at - (sample.used_peak_seconds_ago or 0.0), sample.used_peak_bytes)
        return self._windows.add(at, sample.used_bytes) or closed
