"""What is known of one node: the latest of its host and its GPUs, and the runs that work there."""

from oomwatch import wire
from oomwatch.core import notable
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.hosthistory import HostHistory
from oomwatch.core.memo import Keeping, Memo
from oomwatch.core.notable import Notable
from oomwatch.core.parts import Parts, of_host
from oomwatch.core.preemptions import Preemptions
from oomwatch.core.subject import Subject

# A reading counts for three intervals, and for five seconds at least: one lost sample is no loss of sight.
STALE_INTERVALS = 3
STALE_SECONDS_MIN = 5.0
RUN_QUIET_SECONDS = 1800.0  # another run's events, and none of this one's for so long: this one has left the node


def stale_after_seconds(interval_seconds: float) -> float:
    """How long a reading counts that comes so often."""
    return max(STALE_SECONDS_MIN, STALE_INTERVALS * interval_seconds)


class NodeRecord:
    """One node, as its agent describes it. `heard_at` is by the server's clock, all else by the agent's."""

    def __init__(self, hello: wire.Hello, now: float, keeping: Keeping) -> None:
        self.subject = Subject("node", hello.node)
        self.hello = hello
        self.heard_at = now
        self.stopped = False
        self.gpus: dict[str, GpuRecord] = {}
        self.all_answer = True  # every GPU in the last sample
        self.lost: set[str] = set()  # GPUs that were lost when they were last listed, and have not come back
        self.subjects: tuple[Subject, ...] = ()  # the node and its GPUs
        self.host: wire.HostSample | None = None
        self.host_at = 0.0
        self.host_processes: tuple[wire.HostProcess, ...] | None = None
        self.parts = Parts()  # of the host
        self.history = HostHistory()
        self.memo = Memo(keeping)
        self.together: wire.Sample | None = None  # the last one that listed processes, of one moment
        self.torch: tuple[wire.TorchSample, ...] = ()
        self.torch_at = 0.0
        self.engines: tuple[wire.EngineSample, ...] = ()
        self.engines_at = 0.0
        self.preemptions = Preemptions()
        self.runs: dict[str, float] = {}  # run -> time of its last event here
        self.notable: tuple[Notable, ...] = ()
        self._keeping = keeping
        self.greet(hello, now)

    @property
    def name(self) -> str:
        return self.hello.node

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.hello.facts.host.addresses if self.hello.facts.host else ()

    def greet(self, hello: wire.Hello, now: float) -> None:
        """Take new facts over. A GPU that is no longer listed is forgotten: the agent lists what the driver lists."""
        self.hello, self.heard_at, self.stopped = hello, now, False
        self.stale_after_seconds = stale_after_seconds(hello.interval_seconds)
        known = self.gpus
        self.lost |= {label for label, gpu in known.items() if gpu.status == "lost"}
        self.gpus = {}
        for facts in hello.facts.gpus:
            record = known.get(facts.gpu)
            if record is None or record.facts.uuid != facts.uuid:
                record = GpuRecord(hello.node, facts, self._keeping)
            record.describe(facts)
            self.gpus[facts.gpu] = record
        self.lost -= set(self.gpus)
        self.subjects = (self.subject, *(gpu.subject for gpu in self.gpus.values()))

    def observe(self, sample: wire.Sample) -> bool:
        """Take the readings in. True: with them, a minute of some GPU's readings, or a block of the host's, is over."""
        self.all_answer = all(gpu.status == "ok" for gpu in sample.gpus)
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
            if any(gpu.processes is not None for gpu in sample.gpus):
                self.together = sample
        if sample.engines:
            self.engines, self.engines_at = sample.engines, sample.at
            self.preemptions.observe(sample.engines, sample.at)
        return any(closed)

    def shift(self, seconds: float) -> None:
        """The server's clock was set by so much, and with it all times that it keeps."""
        self.heard_at += seconds
        self.together = None  # the next one is here in seconds
        self.host_at += seconds
        self.history.shift(seconds)
        self.torch_at += seconds
        self.engines_at += seconds
        self.preemptions.shift(seconds)
        self.runs = {run: at + seconds for run, at in self.runs.items()}
        self.notable = notable.moved(self.notable, seconds)
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
            gpu.rename_run(old, new)

    def gpu_of_process(self, pid: int | None) -> GpuRecord | None:
        """The GPU whose process table lists this process; None where none does, or several do."""
        tables = ((gpu, gpu.processes or ()) for gpu in self.gpus.values())
        found = [gpu for gpu, processes in tables if any(process.pid == pid for process in processes)]
        return found[0] if len(found) == 1 else None

    def sole_run(self) -> str | None:
        """The run that everything on this node belongs to; None where there is none, or more than one."""
        return next(iter(self.runs)) if len(self.runs) == 1 else None
