"""Where each message belongs: it goes to the records of the GPU, the node and the run that it concerns.

A line's place is that of the process which wrote it, which need not be the node that read it; a step is over on all the
GPUs of its run, whichever node its line was read on.
"""

from collections.abc import Sequence

from oomwatch import wire
from oomwatch.core.allocator import believed_ratio, by_gpu
from oomwatch.core.coverage import PROBE
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.gpuwindows import PEAK_SLICE_SECONDS
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.notable import NOTABLE, OUT_OF_MEMORY, Notable, kept
from oomwatch.core.past import LEVEL_STEPS, levels_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Subject


class Intake:
    """Feeds a fleet, and decides nothing."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._nodes_at: dict[str, str | None] | None = None  # by address; None: several have it

    def greet(self, hello: wire.Hello, now: float) -> NodeRecord:
        node = self._fleet.nodes.get(hello.node)
        if node is None:
            node = self._fleet.nodes[hello.node] = NodeRecord(hello, now, self._fleet.keeping)
        else:
            node.greet(hello, now)
        self._nodes_at = None
        if hello.run:
            self._hear_of(hello.run, node, now)
        return node

    def observe_sample(self, sample: wire.Sample, node: NodeRecord) -> bool:
        """Take the readings of a node in. True: with them, a block of readings is complete."""
        closed = node.observe(sample)
        self._hear_of_processes(sample, node)
        for name in dict.fromkeys(reading.run or node.sole_run() for reading in sample.torch):
            if (run := self._fleet.runs.get(name or "")) is not None:
                run.sights.see(PROBE, PROBE, sample.at)
        for label, sums in by_gpu(sample.torch).items():
            gpu = node.gpus.get(label)
            if gpu is not None:
                gpu.observe_probe(sums, sample.at)
        return closed

    def observe(self, event: wire.Event, node: NodeRecord) -> list[Subject]:
        """Put an event where it belongs; returns the subjects that it concerns."""
        if isinstance(event.body, wire.RunNamed) and event.run is not None:
            self._name(event.body.provisional, event.run)
        run = self._run(event, node)
        place = self._place(event, node, run)
        gpu = place if isinstance(place, GpuRecord) else None
        if gpu is not None and run is not None:
            gpu.run = run.name
            self._fleet.nodes[gpu.subject.name].hear_of(run.name, event.at)
        concerned = [place.subject]
        if run is not None:
            concerned.append(run.subject)
            concerned += self._observe_run(event, run, node, gpu)
        if isinstance(event.body, NOTABLE) and not event.backlog:
            name, works = (run.name, run.lives.now.works) if run else (None, 0)
            place.notable = kept(place.notable, Notable(event.at, event.body, event.origin, name, works))
        return list(dict.fromkeys(concerned))

    def _place(
        self, event: wire.Event, node: NodeRecord, run: RunRecord | None
    ) -> "GpuRecord | NodeRecord | RunRecord":
        """What an event is about: a GPU, or the node that its process runs on, which need not be the one that read it.

        A driver's log holds the lines of all nodes. Of a node that has no agent, its run is all that is known.
        """
        ip = event.origin.ip if event.origin else None
        if ip is None or not node.addresses or ip in node.addresses:
            return node.gpus.get(getattr(event.body, "gpu", None) or "") or node
        elsewhere = self._fleet.nodes.get(self._node_at(ip) or "")
        if elsewhere is None:
            return run or node
        return elsewhere.gpu_of_process(event.origin.pid if event.origin else None) or elsewhere

    def _node_at(self, ip: str) -> str | None:
        """The node with this address. Some, as of a container bridge, are those of many nodes, and say nothing."""
        if self._nodes_at is None:
            self._nodes_at = {}
            for node in self._fleet.nodes.values():
                for address in node.addresses:
                    self._nodes_at[address] = None if address in self._nodes_at else node.name
        return self._nodes_at.get(ip)

    def _run(self, event: wire.Event, node: NodeRecord) -> RunRecord | None:
        name = event.run or node.hello.run or node.sole_run()
        return self._hear_of(self._fleet.names.of(name), node, event.at) if name else None

    def _name(self, provisional: str, name: str) -> None:
        """What went by `provisional` until now is the run `name`."""
        self._fleet.names.learn(provisional, name)
        name = self._fleet.names.of(name)
        for node in self._fleet.nodes.values():
            node.rename_run(provisional, name)
        self._fleet.pasts.rename(provisional, name)
        old = self._fleet.runs.pop(provisional, None) if provisional in self._fleet.names else None
        if old is not None:
            run = self._fleet.runs.setdefault(name, RunRecord(name, old.first_seen_at, self._fleet.keeping))
            run.simulated = old.simulated
            run.absorb(old)

    def _hear_of_processes(self, sample: wire.Sample, node: NodeRecord) -> None:
        """A node belongs to the runs of its processes too: beside the driver's, no node tells of steps."""
        told = [process.run for gpu in sample.gpus for process in gpu.processes or ()]
        told += [reading.run for reading in sample.torch]
        for name in dict.fromkeys(told):
            if name is not None and (run := self._fleet.runs.get(name)) is not None:
                node.hear_of(name, sample.at)
                run.nodes.setdefault(node.name)

    def _hear_of(self, name: str, node: NodeRecord, at: float) -> RunRecord:
        node.hear_of(name, at)
        run = self._fleet.runs.get(name)
        if run is None:
            run = self._fleet.runs[name] = RunRecord(name, at, self._fleet.keeping)
        run.nodes.setdefault(node.name)
        run.last_seen_at = max(run.last_seen_at, at)
        run.simulated = node.hello.simulated
        return run

    def _observe_run(self, event: wire.Event, run: RunRecord, node: NodeRecord, gpu: GpuRecord | None) -> list[Subject]:
        body, pid = event.body, event.origin.pid if event.origin else None
        run.sights.observe(event)
        if isinstance(body, wire.Config):
            self._configure(event, body, run)
        if isinstance(body, wire.Step):
            record = self._add_step(event, body, run)
            if record is None or event.backlog:
                return []
            run.timeline.observe(event.at, body)
            self._observe_step_peak(record, run)
            return self._finish_step(record, run)
        if event.backlog:
            return []
        run.timeline.observe(event.at, body)
        if isinstance(body, OUT_OF_MEMORY):
            run.lives.fail()
        if isinstance(body, wire.Reshard):
            run.mark_cycle(body.marker, event.at, (node.name, pid))
        if isinstance(body, wire.TorchMemory):
            self._observe_torch(event.at, body, run, gpu)
        if isinstance(body, wire.EngineSleep) and gpu is not None and body.still_used_bytes is not None:
            gpu.observe_sleep(body.still_used_bytes, pid)
        return []

    def _configure(self, event: wire.Event, told: wire.Config, run: RunRecord) -> None:
        if not event.backlog:
            run.lives.configure(event.at, anew=bool(run.config) and told.values != run.config)
        run.configure(told)

    def _add_step(self, event: wire.Event, step: wire.Step, run: RunRecord) -> StepRecord | None:
        starts, pid = run.steps.restarts, event.origin.pid if event.origin else None
        record = run.steps.add(event.at, step, pid=pid, backlog=event.backlog, anew=run.lives.is_starting)
        if record is not None:
            run.lives.finish_step(event.at, resumed=record.segment > starts)
        return record

    def _finish_step(self, record: StepRecord, run: RunRecord) -> list[Subject]:
        """A step is over on all the GPUs of the run, whichever node its line was read on; all that it concerns."""
        spans = run.timeline.last_step
        gpus = list(self._fleet.gpus_of_run(run))
        if self._fleet.pasts.begins(run.name, record.segment, record.step.step):
            self._fleet.pasts.turn_over(run.name, ended_well=not self._ran_out(run, gpus, record))
        owner = run.torch_subject or (gpus[0].subject if len(gpus) == 1 else None)
        for gpu in gpus:
            mine = gpu.subject == owner
            gpu.finish_step(run.name, record, spans, record.step.torch_reserved_peak_bytes if mine else None)
        self._keep_levels(record, run, gpus)
        nodes = [node.subject for name in run.nodes if (node := self._fleet.nodes.get(name))]
        return [*(gpu.subject for gpu in gpus), *nodes]

    def _keep_levels(self, record: StepRecord, run: RunRecord, gpus: Sequence[GpuRecord]) -> None:
        """Every few steps, what the next start of the run will be held against."""
        if record.usual and record.step.step % LEVEL_STEPS == 0:
            levels = levels_of([gpu.steps for gpu in gpus if gpu.steps], run.config)
            if levels is not None:
                self._fleet.pasts.update(run.name, levels)

    def _ran_out(self, run: RunRecord, gpus: Sequence[GpuRecord], record: StepRecord) -> bool:
        """Whether a run that starts again with this step had ended out of memory."""
        steps = [one.at for one in run.steps if one.segment < record.segment]
        last_at = steps[-1] if steps else float("-inf")
        nodes = [node for name in run.nodes if (node := self._fleet.nodes.get(name))]
        places: list[RunRecord | NodeRecord | GpuRecord] = [run, *nodes, *gpus]
        notable = [one for place in places for one in place.notable]
        return any(one.at >= last_at and isinstance(one.body, wire.DeviceOom | wire.HostOom) for one in notable)

    def _observe_torch(self, at: float, memory: wire.TorchMemory, run: RunRecord, gpu: GpuRecord | None) -> None:
        run.torch_subject = gpu.subject if gpu else run.subject
        if gpu is not None:
            gpu.observe_line(memory, at)
        if memory.reserved_bytes is None or (gpu is not None and gpu.is_probed(at)):
            return
        capacity = gpu.usable_bytes if gpu else memory.device_total_bytes or self._smallest_card(run)
        in_use = memory.device_used_bytes
        if in_use is None and gpu is not None:
            in_use = gpu.used_bytes
        ratio = believed_ratio(memory.reserved_bytes, in_use, capacity)
        if ratio is not None:
            (gpu or run).torch_reserved.add(at, ratio)

    def _observe_step_peak(self, record: StepRecord, run: RunRecord) -> None:
        """The step line's lifetime peak belongs to the process whose memory lines the run prints: rank 0."""
        peak_bytes = record.step.torch_reserved_peak_bytes
        gpu = self._fleet.gpu(run.torch_subject) if run.torch_subject and run.torch_subject.scope == "gpu" else None
        if peak_bytes is None or (gpu is not None and gpu.is_probed(record.at)):
            return
        start = record.at - (record.step.step_seconds or 0.0) - PEAK_SLICE_SECONDS
        cards = [gpu] if gpu else list(self._fleet.gpus_of_run(run))
        peaks = [peak for card in cards if (peak := card.used_peaks.peak(start, record.at)) is not None]
        capacity = gpu.usable_bytes if gpu else self._smallest_card(run)
        ratio = believed_ratio(peak_bytes, max(peaks, default=None), capacity)
        if ratio is not None:
            (gpu or run).torch_reserved.add(record.at, ratio)

    def _smallest_card(self, run: RunRecord) -> int | None:
        return min((gpu.usable_bytes for gpu in self._fleet.gpus_of_run(run)), default=None)
