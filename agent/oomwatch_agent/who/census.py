"""Who is who on this node: which process is on which GPU, of which run, with which rank and role. PURE.

Several sources know a part each: the driver's process tables, what a process was started with, Ray's files, the log
lines that a process wrote, the probe within it. They are brought together here by process id, and remembered for a
while: the line that says a process ran out of memory is read after the process is gone.

Logs of a container number its processes in their own way. Where the agent is outside of it, `Identity.inner_pid` of the
processes on the GPUs tells which they are.
"""

from collections.abc import Iterable, Iterator

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Found, Identity, KnownBy
from oomwatch_agent.who.roles import better

ON_GPU_SECONDS = 600.0  # a killed process' last lines may come minutes late through Ray's driver log
HEARD_OF_SECONDS = 3600.0  # a worker is heard of when it starts, and takes memory of a GPU once it has loaded a model


class _OnGpu(msgspec.Struct, frozen=True):
    """Where a process was last seen: bytes by GPU label (0 where the driver does not tell)."""

    at: float
    used_bytes: dict[str, int]


class _Heard(msgspec.Struct, frozen=True):
    at: float
    identity: Identity


class Census:
    """All times are seconds of one clock that does not jump. `run`: what a person said that everything here is of."""

    def __init__(self, run: str | None = None) -> None:
        self._run = run
        self._on_gpu: dict[int, _OnGpu] = {}
        self._heard: dict[int, _Heard] = {}
        self._inner: dict[int, set[int]] = {}  # the pid within a container -> pids of processes on GPUs
        self._better_names: dict[str, str] = {}  # of a batch or Ray job -> what its processes' run is called

    def see(self, samples: Iterable[wire.GpuSample], now: float) -> None:
        """Learn from process tables. Samples without one (not read this time) change nothing."""
        tables = [sample for sample in samples if sample.processes is not None]
        seen: dict[int, dict[str, int]] = {}
        for sample in tables:
            for process in sample.processes or ():
                seen.setdefault(process.pid, {})[sample.gpu] = process.used_bytes or 0
        self._on_gpu.update({pid: _OnGpu(now, used) for pid, used in seen.items()})
        if tables:
            self._forget(now)

    def hear(self, identities: Iterable[Identity], now: float) -> None:
        """Learn what sources know of processes."""
        for said in identities:
            known = self._heard.get(said.pid)
            self._heard[said.pid] = _Heard(now, self._merged(known.identity, said) if known else said)
            if said.inner_pid is not None:
                self._inner.setdefault(said.inner_pid, set()).add(said.pid)

    def hear_line(self, found: Found, now: float) -> None:
        """Learn from an event: who wrote it belongs to its run."""
        pid = found.origin.pid
        if pid is not None and (found.run is not None or found.origin.rank is not None):
            self.hear([Identity(pid=pid, run=found.run, run_by=found.run_by, rank=found.origin.rank)], now)

    def on_gpus(self, pid: int) -> dict[str, int]:
        """Bytes by GPU label of the process that a log calls `pid`; empty where it is on none, or not sure which."""
        process = self.process(pid)
        return self._on_gpu[process].used_bytes if process is not None else {}

    def process(self, pid: int) -> int | None:
        """The process on a GPU that is called `pid`, by this machine or in its container; None unless it is just one.

        In the numbering of the process tables."""
        candidates = {pid} if pid in self._on_gpu else set()
        candidates |= {process for process in self._inner.get(pid, ()) if process in self._on_gpu}
        return candidates.pop() if len(candidates) == 1 else None

    def identity(self, pid: int) -> Identity:
        """All that is known of a process, whatever numbering `pid` is of."""
        process = self.process(pid)
        names = (pid,) if process is None else (pid, process, *self._inner_of(process))
        found = Identity(pid=pid)
        for name in dict.fromkeys(names):
            if (known := self._heard.get(name)) is not None and self.process(name) == process:
                found = self._merged(found, known.identity)
        return found

    def run_of(self, found: Found) -> str | None:
        """The run of an event: its own, or what its process' run is better known by."""
        pid = found.origin.pid
        known = self.identity(pid) if pid is not None and not found.backlog else None
        if known is not None and known.run is not None and (found.run is None or known.run_by > found.run_by):
            return self.named(known.run)
        if pid is None and found.run_by == KnownBy.FILE:
            return self.named(self._sole_run() or found.run)
        return self.named(found.run)

    def _sole_run(self) -> str | None:
        """The run of every process on the GPUs whose run is known; None where there is none, or more than one."""
        runs = {self.identity(pid).run for pid in self._on_gpu} - {None}
        return runs.pop() if len(runs) == 1 else None

    def named(self, run: str | None) -> str | None:
        """What a run is called on this node, for one that may go by the name of its job."""
        if run is None or self._run is not None:
            return run and self._run
        for _ in KnownBy:
            run = self._better_names.get(run, run)
        return run

    def named_gpu(self, sample: wire.GpuSample) -> wire.GpuSample:
        """The same sample with run, rank and role of its processes."""
        if not sample.processes:
            return sample
        return msgspec.structs.replace(
            sample, processes=tuple(self._described(process) for process in sample.processes)
        )

    def named_host(self, sample: wire.HostSample) -> wire.HostSample:
        """The same sample with the runs of its processes."""
        if not sample.processes:
            return sample
        processes = (
            msgspec.structs.replace(process, run=self.named(self.identity(process.pid).run or process.run))
            for process in sample.processes
        )
        return msgspec.structs.replace(sample, processes=tuple(processes))

    def _described(self, process: wire.GpuProcess) -> wire.GpuProcess:
        known = self.identity(process.pid)
        return msgspec.structs.replace(
            process,
            run=self.named(known.run or process.run),
            rank=known.rank if known.rank is not None else process.rank,
            role=better(known.role, process.role),
        )

    def _inner_of(self, process: int) -> Iterator[int]:
        known = self._heard.get(process)
        if known is not None and known.identity.inner_pid is not None:
            yield known.identity.inner_pid

    def _merged(self, known: Identity, said: Identity) -> Identity:
        """What is newer counts, except that a run's better name is kept."""
        keeps = known.run is not None and (said.run is None or known.run_by > said.run_by)
        run, run_by = (known.run, known.run_by) if keeps else (said.run, said.run_by)
        for other in (known, said):
            if (
                run
                and other.run
                and other.run != run
                and KnownBy.FILE < other.run_by < run_by
                and other.run_by <= KnownBy.RAY_JOB
            ):
                self._better_names[other.run] = run
        return Identity(
            pid=known.pid,
            inner_pid=said.inner_pid if said.inner_pid is not None else known.inner_pid,
            run=run,
            run_by=run_by,
            rank=said.rank if said.rank is not None else known.rank,
            role=better(known.role, said.role),
        )

    def _forget(self, now: float) -> None:
        self._on_gpu = {pid: seen for pid, seen in self._on_gpu.items() if now - seen.at <= ON_GPU_SECONDS}
        kept = {pid for pid, known in self._heard.items() if now - known.at <= HEARD_OF_SECONDS}
        kept |= {name for pid in self._on_gpu for name in (pid, *self._inner_of(pid))}
        self._heard = {pid: known for pid, known in self._heard.items() if pid in kept}
        inner = ((name, {pid for pid in pids if pid in self._on_gpu}) for name, pids in self._inner.items())
        self._inner = {name: pids for name, pids in inner if pids}
