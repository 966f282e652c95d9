"""What is known of every node, GPU and run, and which of them belong together.

The fleet is fed by the engine through the intake, one wire message at a time, and decides nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.lives import LifeCount
from oomwatch.core.memo import Keeping, Memo
from oomwatch.core.names import RunNames
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.notable import Notable
from oomwatch.core.past import Pasts
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Scope, Subject

RUN_OVER_SECONDS = 3600.0  # so long without a word, and without ten steps, on nodes that are watched: the run has ended
RUN_OVER_STEPS = 10
RUN_WATCHED_SECONDS = 60.0


class Fleet:
    """Everything the server knows. Dictionaries keep the order of first sight, so that every walk is reproducible."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeRecord] = {}
        self.runs: dict[str, RunRecord] = {}
        self.names = RunNames()
        self.pasts = Pasts()
        self.keeping = Keeping()  # the judge's

    def gpu(self, subject: Subject) -> GpuRecord | None:
        node = self.nodes.get(subject.name)
        return node.gpus.get(subject.gpu) if node else None

    def memo_of(self, subject: Subject) -> Memo | None:
        """Where what is worked out of a subject is kept; None where it is not known."""
        record = self.gpu(subject) if subject.scope == "gpu" else None
        known = {"gpu": record, "node": self.nodes.get(subject.name), "run": self.runs.get(subject.name)}[subject.scope]
        return known.memo if known is not None else None

    def subjects(self, scope: Scope) -> Iterator[Subject]:
        """All subjects of a kind."""
        if scope == "run":
            yield from (run.subject for run in self.runs.values())
            return
        for node in self.nodes.values():
            yield from node.subjects[:1] if scope == "node" else node.subjects[1:]

    def run_of(self, subject: Subject) -> str | None:
        """The run that a subject works for, where that is known."""
        if subject.scope == "run":
            return subject.name
        node = self.nodes.get(subject.name)
        if node is None:
            return None
        gpu = node.gpus.get(subject.gpu) if subject.scope == "gpu" else None
        # A run that has left the node is nobody's on it any more, though it may once have been this GPU's.
        return gpu.run if gpu is not None and gpu.run in node.runs else node.sole_run()

    def run_record(self, subject: Subject) -> RunRecord | None:
        """What is known of the run that a subject works for."""
        return self.runs.get(self.run_of(subject) or "")

    def rhythm_seconds(self, subject: Subject) -> float:
        """How long a step of the subject's run takes; 0 where that is not known."""
        run = self.run_record(subject)
        return (run.steps.rhythm_seconds() or 0.0) if run else 0.0

    def warm_since(self, subject: Subject) -> float:
        """Since when the subject's run is past the steps that warm up; what came before says nothing of a trend."""
        run = self.run_record(subject)
        return max(run.steps.warm_since(), run.lives.started_at) if run else float("-inf")

    def lives(self, labels: Mapping[str, str]) -> LifeCount | None:
        """Those of the run that an alert with these labels is about."""
        run = self.runs.get(self.names.of(labels.get("run", "")))
        return run.lives if run else None

    def is_between_starts(self, subject: Subject) -> bool:
        """Whether the subject's run has ended out of memory, and its next start has yet to finish a step."""
        run = self.run_record(subject)
        if run is None:
            return False
        gpu = self.gpu(subject) if subject.scope == "gpu" else None
        return run.lives.is_starting or (run.lives.has_failed and gpu is not None and gpu.is_left)

    def is_left_behind(self, failure: Notable) -> bool:
        """Whether the run that failed works again."""
        lives = self.lives({"run": failure.run or ""})
        return lives is not None and lives.now.works > failure.works

    def is_probed(self, subject: Subject, now: float) -> bool:
        gpu = self.gpu(subject) if subject.scope == "gpu" else None
        return gpu is not None and gpu.is_probed(now)

    def gpus_of_run(self, run: RunRecord) -> Iterator[GpuRecord]:
        for name in run.nodes:
            node = self.nodes.get(name)
            for gpu in node.gpus.values() if node else ():
                if gpu.run in (None, run.name):
                    yield gpu

    def labels(self, subject: Subject) -> dict[str, str]:
        labels: dict[str, str] = {}
        if subject.scope != "run":
            labels["node"] = subject.name
        if subject.scope == "gpu":
            labels["gpu"] = subject.gpu
        run = self.run_of(subject)
        if run:
            labels["run"] = run
        return labels

    def run_is_over(self, run: str, now: float) -> bool:
        """Whether a run is seen to have ended: its nodes are being watched, and nothing of it is told any more."""
        if run in self.names:
            return True  # it turned out to be another one
        record = self.runs.get(run)
        if record is None:
            return True
        nodes = [node for name in record.nodes if (node := self.nodes.get(name))]
        if all(run not in node.runs and bool(node.runs) for node in nodes):
            return True  # they have all gone on to another one
        quiet_seconds = max(RUN_OVER_SECONDS, RUN_OVER_STEPS * (record.steps.rhythm_seconds() or 0.0))
        watched = all(node.stopped or now - node.heard_at < RUN_WATCHED_SECONDS for node in nodes)
        return watched and now - record.last_seen_at > quiet_seconds

    # ------------------------------------------------------------ clocks and forgetting

    def excuse_silence(self, seconds: float, nodes: Iterable[str] | None = None) -> None:
        """For so long nobody was heard, or none of these nodes: the server stood still, or was cut off from them."""
        for name in self.nodes if nodes is None else nodes:
            if name in self.nodes:
                self.nodes[name].heard_at += seconds

    def shift(self, seconds: float) -> None:
        """The server's clock was set by so much: move all times along, or new readings would look old, or too new."""
        for node in self.nodes.values():
            node.shift(seconds)
        for run in self.runs.values():
            run.shift(seconds)

    def forget(self, before: float, busy: Collection[Subject]) -> tuple[list[str], list[str]]:
        """Drop the nodes and runs that nothing was heard of since `before`, but for `busy` ones; their names."""
        busy_nodes = {subject.name for subject in busy if subject.scope != "run"}
        busy_runs = {subject.name for subject in busy if subject.scope == "run"}
        nodes = [name for name, node in self.nodes.items() if node.heard_at < before and name not in busy_nodes]
        runs = [name for name, run in self.runs.items() if run.last_seen_at < before and name not in busy_runs]
        for name in nodes:
            del self.nodes[name]
        for name in runs:
            del self.runs[name]
            self.pasts.forget(name)
        return nodes, runs
