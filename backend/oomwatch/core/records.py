"""The record of one GPU, one node and one run: the latest of each, and the short windows that conditions ask for.

Records take in what concerns them and decide nothing. With the lifecycles they are the only mutable state of the core,
and the engine's alone.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from oomwatch import wire
from oomwatch.core.allocator import Allocator, believed_ratio
from oomwatch.core.blocks import BlockWindow
from oomwatch.core.coverage import Sights
from oomwatch.core.gpusteps import GpuSteps
from oomwatch.core.hosthistory import HostHistory
from oomwatch.core.memo import Memo
from oomwatch.core.parts import Parts, of_gpu, of_host
from oomwatch.core.peaks import GpuStep
from oomwatch.core.phases import Span, Timeline
from oomwatch.core.preemptions import Preemptions
from oomwatch.core.steps import StepHistory, StepRecord
from oomwatch.core.window import PeakWindow, Window

Scope = Literal["gpu", "node", "run"]
Channel = Literal["device", "host", "disk"]  # what can run full, and so what a warning can be about
# What can make a condition true: a sample's readings, its figures of torch, that a block of readings is complete, an
# event, that a step is over, or that time has passed.
News = Literal["readings", "torch", "blocks", "events", "steps", "time"]

WINDOW_SECONDS_MAX = 21600.0  # what a rule may look back: eight steps of three quarters of an hour
PEAK_SLICE_SECONDS = 10.0
PEAK_KEEP_SECONDS = 1800.0
TORCH_SLICE_SECONDS = 60.0  # the probe reads at 1-2 Hz; a trend needs no more than its peaks
PROBE_FRESH_SECONDS = 60.0  # while a probe tells, log lines of the same GPU are not mixed in
NOTABLE_KEPT = 64
CYCLE_MARKS_KEPT = 2000
MARKER_CURRENT_SECONDS = 600.0  # a marker that was not printed for so long, and for so many steps, is one of the past
MARKER_CURRENT_STEPS = 3
RUN_QUIET_SECONDS = 1800.0  # another run's events, and none of this one's for so long: this one has left the node


# The events that a rule may name: they are kept with their GPU or node for a while.
NOTABLE = (wire.DeviceOom, wire.HostOom, wire.DiskFull, wire.ShmSmall, wire.GpuLost, wire.NcclError)


class Subject(NamedTuple):
    """What a rule judges: a GPU, a node or a run. Equal subjects are the same one whatever run is on it."""

    scope: Scope
    name: str  # node or run
    gpu: str = ""


def subject_of(labels: Mapping[str, str]) -> Subject:
    """What an alert is about, by its labels."""
    if "gpu" in labels:
        return Subject("gpu", labels["node"], labels["gpu"])
    if "node" in labels:
        return Subject("node", labels["node"])
    return Subject("run", labels.get("run", ""))


class Notable(NamedTuple):
    """An event that a rule may name, with who wrote it."""

    at: float
    body: wire.EventBody
    origin: wire.Origin | None


Printer = tuple[str, int | None]  # node and process id: ids repeat between nodes


class CycleMark(NamedTuple):
    at: float
    printer: Printer


def _moved(notable: "deque[Notable]", seconds: float) -> "deque[Notable]":
    return deque((one._replace(at=one.at + seconds) for one in notable), maxlen=NOTABLE_KEPT)


class GpuRecord:
    """One GPU. `sample` is the last reading that came with an answer, `at` its time; `status` is the last one told."""

    def __init__(self, node: str, facts: wire.GpuFacts) -> None:
        self.subject = Subject("gpu", node, facts.gpu)
        self.facts = facts
        self.sample: wire.GpuSample | None = None
        self.at = 0.0
        self.status: wire.GpuStatus = "ok"
        self.processes: tuple[wire.GpuProcess, ...] | None = None  # None: never read
        self.parts = Parts()
        self.run: str | None = None
        self.used_peaks = PeakWindow(PEAK_SLICE_SECONDS, PEAK_KEEP_SECONDS)
        self.torch_reserved = Window(WINDOW_SECONDS_MAX)
        self.probed_at = float("-inf")
        self.blocks = BlockWindow()
        self.memo = Memo()
        self._steps = GpuSteps()
        self._steps_of: str | None = None  # the run whose steps they are
        self.notable: deque[Notable] = deque(maxlen=NOTABLE_KEPT)

    @property
    def usable_bytes(self) -> int:
        return self.facts.total_bytes - self.facts.reserved_bytes

    @property
    def used_bytes(self) -> int | None:
        """Device memory in use, as last read."""
        return self.sample.used_bytes if self.sample else None

    @property
    def steps(self) -> Sequence[GpuStep]:
        """What the last steps of its run were on this GPU, oldest first."""
        return self._steps.kept

    def is_probed(self, at: float) -> bool:
        """Whether a probe tells of this GPU: then log lines are not mixed in."""
        return at - self.probed_at < PROBE_FRESH_SECONDS

    def observe_probe(self, sums: Allocator, at: float) -> None:
        if sums.reserved_bytes is None:
            return
        self.probed_at = max(self.probed_at, at)
        self._steps.read_torch(sums, self.used_bytes)
        ratio = believed_ratio(sums.reserved_bytes, self.used_bytes, self.usable_bytes)
        if ratio is not None:
            self.torch_reserved.add_peak(at, ratio, TORCH_SLICE_SECONDS)

    def observe_line(self, memory: wire.TorchMemory, at: float) -> None:
        """A line of a process on this GPU told its memory: as good a reading as the driver's own."""
        if memory.device_used_bytes is not None:
            self._steps.read(at, memory.device_used_bytes)
        if not self.is_probed(at):
            in_use = self.used_bytes if memory.device_used_bytes is None else memory.device_used_bytes
            self._steps.read_torch(Allocator(memory.reserved_bytes, memory.allocated_bytes), in_use)

    def observe_sleep(self, still_used_bytes: int) -> None:
        self._steps.read_residue(still_used_bytes)

    def finish_step(self, run: str, record: StepRecord, spans: Sequence[Span], lifetime_bytes: float | None) -> None:
        """A step of its run is over. Steps of another run say nothing of this one."""
        if self._steps_of not in (None, run):
            self._steps = GpuSteps()
        self._steps_of = run
        self._steps.cut(record, spans, lifetime_bytes)

    def shift(self, seconds: float) -> None:
        self.at += seconds
        self.blocks.shift(seconds)
        self._steps.shift(seconds)
        self.probed_at += seconds
        self.used_peaks.shift(seconds)
        self.torch_reserved.shift(seconds)
        self.notable = _moved(self.notable, seconds)

    def observe(self, sample: wire.GpuSample, at: float) -> bool:
        """Take a reading in. True: with it, a block of readings is complete."""
        self.status = sample.status
        if sample.processes is not None:
            self.processes = sample.processes
            self.run = next((process.run for process in sample.processes if process.run), self.run)
            self.parts.observe(at, of_gpu(sample.processes, self.run))
        if sample.status != "ok" or sample.used_bytes is None:
            return False
        self.used_peaks.add(at, sample.used_bytes)
        self._steps.read(at, sample.used_bytes)
        if at >= self.at:
            self.sample, self.at = sample, at
        return self.blocks.add(at, sample.used_bytes)


class NodeRecord:
    """One node, as its agent describes it. `heard_at` is by the server's clock, all else by the agent's."""

    def __init__(self, hello: wire.Hello, now: float) -> None:
        self.subject = Subject("node", hello.node)
        self.hello = hello
        self.heard_at = now
        self.stopped = False
        self.gpus: dict[str, GpuRecord] = {}
        self.lost: set[str] = set()  # GPUs that were lost when they were last listed, and have not come back
        self.subjects: tuple[Subject, ...] = ()  # the node and its GPUs
        self.host: wire.HostSample | None = None
        self.host_at = 0.0
        self.host_processes: tuple[wire.HostProcess, ...] | None = None
        self.parts = Parts()  # of the host
        self.history = HostHistory()
        self.memo = Memo()
        self.torch: tuple[wire.TorchSample, ...] = ()
        self.torch_at = 0.0
        self.engines: tuple[wire.EngineSample, ...] = ()
        self.engines_at = 0.0
        self.preemptions = Preemptions()
        self.runs: dict[str, float] = {}  # run -> time of its last event here
        self.notable: deque[Notable] = deque(maxlen=NOTABLE_KEPT)
        self.greet(hello, now)

    @property
    def name(self) -> str:
        return self.hello.node

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.hello.facts.host.addresses if self.hello.facts.host else ()

    @property
    def interval_seconds(self) -> float:
        return self.hello.interval_seconds

    def greet(self, hello: wire.Hello, now: float) -> None:
        """Take new facts over. A GPU that is no longer listed is forgotten: the agent lists what the driver lists."""
        self.hello, self.heard_at, self.stopped = hello, now, False
        known = self.gpus
        self.lost |= {label for label, gpu in known.items() if gpu.status == "lost"}
        self.gpus = {}
        for facts in hello.facts.gpus:
            record = known.get(facts.gpu)
            if record is None or record.facts.uuid != facts.uuid:
                record = GpuRecord(hello.node, facts)
            record.facts = facts
            self.gpus[facts.gpu] = record
        self.lost -= set(self.gpus)
        self.subjects = (self.subject, *(gpu.subject for gpu in self.gpus.values()))

    def observe(self, sample: wire.Sample) -> bool:
        """Take the readings in. True: with them, a block of readings of some GPU or of the host is complete."""
        known = [(record, gpu) for gpu in sample.gpus if (record := self.gpus.get(gpu.gpu)) is not None]
        closed = [record.observe(gpu, sample.at) for record, gpu in known]
        if sample.host is not None:
            closed.append(self.history.observe(sample.host, sample.at))
        if sample.host is not None and sample.at >= self.host_at:
            self.host, self.host_at = sample.host, sample.at
            if sample.host.processes is not None:
                self.host_processes = sample.host.processes
                self.parts.observe(sample.at, of_host(sample.host.processes, sample.host.shm_used_bytes))
        if sample.at >= self.torch_at:
            self.torch, self.torch_at = sample.torch, sample.at
        if sample.engines:
            self.engines, self.engines_at = sample.engines, sample.at
            self.preemptions.observe(sample.engines, sample.at)
        return any(closed)

    def shift(self, seconds: float) -> None:
        """The server's clock was set by so much, and with it all times that it keeps."""
        self.heard_at += seconds
        self.host_at += seconds
        self.history.shift(seconds)
        self.torch_at += seconds
        self.engines_at += seconds
        self.preemptions.shift(seconds)
        self.runs = {run: at + seconds for run, at in self.runs.items()}
        self.notable = _moved(self.notable, seconds)
        for gpu in self.gpus.values():
            gpu.shift(seconds)

    def hear_of(self, run: str, at: float) -> None:
        """Note an event of a run; runs that have long been quiet while this one is not have left the node."""
        self.runs[run] = max(at, self.runs.get(run, 0.0))
        for name in [name for name, last in self.runs.items() if last < at - RUN_QUIET_SECONDS]:
            del self.runs[name]

    def rename_run(self, old: str, new: str) -> None:
        if old in self.runs:
            self.runs[new] = max(self.runs.pop(old), self.runs.get(new, 0.0))
        for gpu in self.gpus.values():
            if gpu.run == old:
                gpu.run = new

    def gpu_of_process(self, pid: int | None) -> GpuRecord | None:
        """The GPU whose process table lists this process; None where none does, or several do."""
        tables = ((gpu, gpu.processes or ()) for gpu in self.gpus.values())
        found = [gpu for gpu, processes in tables if any(process.pid == pid for process in processes)]
        return found[0] if len(found) == 1 else None

    def sole_run(self) -> str | None:
        """The run that everything on this node belongs to; None where there is none, or more than one."""
        return next(iter(self.runs)) if len(self.runs) == 1 else None


class RunRecord:
    """One training run, over all nodes that told of it."""

    def __init__(self, run: str, now: float) -> None:
        self.subject = Subject("run", run)
        self.name = run
        self.first_seen_at = now
        self.last_seen_at = now
        self.nodes: dict[str, None] = {}  # in order of first sight
        self.simulated = False
        self.steps = StepHistory()
        self.timeline = Timeline()
        self.sights = Sights()
        self.config: dict[str, wire.ConfigValue] = {}
        self.framework: str | None = None
        self.framework_version: str | None = None
        self.torch_reserved = Window(WINDOW_SECONDS_MAX)  # of processes that could not be mapped to a GPU
        self.torch_subject: Subject | None = None  # where the trainer's rank 0 was last seen
        self.cycle_marks: dict[str, deque[CycleMark]] = {}
        self.cycle_totals: dict[str, dict[Printer, int]] = {}
        self.memo = Memo()
        self.notable: deque[Notable] = deque(maxlen=NOTABLE_KEPT)  # of processes whose node is not known

    def shift(self, seconds: float) -> None:
        self.first_seen_at += seconds
        self.last_seen_at += seconds
        self.steps.shift(seconds)
        self.timeline.shift(seconds)
        self.torch_reserved.shift(seconds)
        self.notable = _moved(self.notable, seconds)
        for marks in self.cycle_marks.values():
            moved = [mark._replace(at=mark.at + seconds) for mark in marks]
            marks.clear()
            marks.extend(moved)

    def mark_cycle(self, marker: str, at: float, printer: Printer) -> None:
        self.cycle_marks.setdefault(marker, deque(maxlen=CYCLE_MARKS_KEPT)).append(CycleMark(at, printer))
        totals = self.cycle_totals.setdefault(marker, {})
        totals[printer] = totals.get(printer, 0) + 1

    def absorb(self, other: "RunRecord") -> None:
        """Take over what was told of this run under another name: little, for a run is named when it starts."""
        self.first_seen_at = min(self.first_seen_at, other.first_seen_at)
        self.last_seen_at = max(self.last_seen_at, other.last_seen_at)
        self.nodes |= other.nodes
        self.config = self.config or other.config
        self.framework = self.framework or other.framework
        self.framework_version = self.framework_version or other.framework_version
        if not self.steps:
            self.steps, self.timeline, self.sights = other.steps, other.timeline, other.sights
        for marker, marks in other.cycle_marks.items():
            for mark in marks:
                self.mark_cycle(marker, mark.at, mark.printer)

    def cycle_marker(self) -> str | None:
        """The most reliable of the markers that this run still prints: the one to count cycles by."""
        since = self.last_seen_at - max(
            MARKER_CURRENT_SECONDS, MARKER_CURRENT_STEPS * (self.steps.rhythm_seconds() or 0.0)
        )
        ranked = [marker for marker in (*wire.RESHARD_MARKERS, *self.cycle_marks) if marker in self.cycle_marks]
        current = (marker for marker in ranked if self.cycle_marks[marker][-1].at >= since)
        return next(current, ranked[0] if ranked else None)

    def cycles_total(self) -> int:
        """Cycles since first sight. Several processes print the same cycle, so the busiest one's count is the run's."""
        marker = self.cycle_marker()
        return max(self.cycle_totals[marker].values()) if marker else 0

    def cycles_between(self, start: float, end: float) -> int:
        marks = self.cycle_marks.get(self.cycle_marker() or "", ())
        counts = Counter(mark.printer for mark in marks if start < mark.at <= end)
        return max(counts.values(), default=0)
