"""What is seen of a run: the lines of a trace, as `oomwatch serve --record` would have written them.

A sample each second, step lines a little late (Ray, the file, the tail), memory lines, sleep lines and probes where the
run has them; then what killed it. Samples bear the phase of their second, so that a reading may straddle two phases.
"""

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

from bench.warnings.allocator import Level
from bench.warnings.hostside import RAY_KILLS_RATIO
from bench.warnings.settings import Settings, settings_of
from bench.warnings.shapes import MIB
from bench.warnings.simulate import AWAKE, Ending, Finished, Story, Stretch
from bench.warnings.spec import Spec

from oomwatch import wire
from oomwatch.trace import Line

PROCESSES_EVERY_SECONDS = 10
AFTERWARDS_SECONDS = 40
LATE_SECONDS = (0.5, 1.5)
OUTSIDE_RATIO = 0.3  # of the system's own memory: what the machine runs beside the container
NOISE_MIB = 6  # of the device's figure: contexts of tools come and go
HEADS = {
    "old_log_prob": ("Before compute_log_prob", "After compute_log_prob"),
    "update_actor": ("Before load_fsdp_model_to_gpu", "After update_actor"),
    "update_weights": ("Before resume weights", "After update_weights"),
}
DRIVER_PID, WORKER_PID, ENGINE_PID, TENANT_PID, PIDS_A_LIFE = 4000, 4100, 4300, 9000, 10_000


class _Told(NamedTuple):
    at: float
    message: wire.AgentMessage


def lines(spec: Spec, story: Story) -> Iterator[Line]:
    """The trace of a run, in order of time, from second 0 on."""
    return _Teller(spec, story).lines()


class _Teller:
    def __init__(self, spec: Spec, story: Story) -> None:
        self._spec, self._story = spec, story
        self._settings: Settings = settings_of(spec.config)
        self._dice = Random(f"{spec.seed}/{spec.scenario}/tell")
        self._seq = 0
        self._run = spec.run if spec.tells.steps else None

    def lines(self) -> Iterator[Line]:
        node = self._spec.node
        yield Line(now=0.0, node=node, message=self._hello())
        events = iter([*self._events(), None])
        event = next(events)
        for second, message in self._samples():
            while event is not None and event.at <= second:
                yield Line(now=event.at, node=node, message=self._numbered(event.message))
                event = next(events)
            yield Line(now=second, node=node, message=message)
            yield Line(advance=second)

    def _numbered(self, message: wire.AgentMessage) -> wire.AgentMessage:
        self._seq += 1
        assert isinstance(message, wire.Event)
        return wire.Event(seq=self._seq, at=message.at, body=message.body, run=message.run, origin=message.origin)

    # ------------------------------------------------------------ facts

    def _hello(self) -> wire.Hello:
        spec, host = self._spec, self._spec.nature.host
        gpus = tuple(
            wire.GpuFacts(
                gpu=str(gpu),
                uuid=f"GPU-{spec.seed}-{gpu}",
                name=spec.card.name,
                total_bytes=spec.card.total_bytes,
                reserved_bytes=spec.card.reserved_bytes,
            )
            for gpu in range(self._settings.gpus)
        )
        facts = wire.HostFacts(
            memory_total_bytes=int(host.total_bytes),
            memory_limit_bytes=int(host.limit_bytes) if host.limit_bytes else None,
            memory_limit_source="cgroup v2" if host.limit_bytes else None,
            shm_total_bytes=int(host.shm_total_bytes),
            disk_path="ray",
            disk_total_bytes=int(host.disk_total_bytes),
        )
        return wire.Hello(
            protocol=wire.PROTOCOL_VERSION,
            agent_version="0",
            node=spec.node,
            session=f"s{spec.seed}",
            sent_at=0.0,
            interval_seconds=1.0,
            facts=wire.NodeFacts(gpus=gpus, host=facts),
        )

    # ------------------------------------------------------------ samples

    def _samples(self) -> Iterator[tuple[float, wire.Sample]]:
        second = 1
        for stretch in self._story.stretches:
            end = stretch.start + stretch.seconds
            places = [0] * len(stretch.levels)
            while second < end:
                share = (second - stretch.start) / stretch.seconds
                for gpu, levels in enumerate(stretch.levels):
                    while places[gpu] + 1 < len(levels) and levels[places[gpu] + 1].at <= share:
                        places[gpu] += 1
                now = [levels[place] for levels, place in zip(stretch.levels, places, strict=True)]
                yield float(second), self._sample(second, stretch, now)
                second += 1
        if self._story.ending is not None:
            last = self._story.stretches[-1]
            gone = [Level(0.0, 0.0, 0.0, 0.0)] * len(last.levels)
            for _ in range(AFTERWARDS_SECONDS):
                yield float(second), self._sample(second, last._replace(phase="over"), gone)
                second += 1

    def _sample(self, second: int, stretch: Stretch, now: list[Level]) -> wire.Sample:
        self._seq += 1
        with_processes = second % PROCESSES_EVERY_SECONDS == 1
        busy = 0.92 if stretch.phase in ("rollout", "update_actor", "update_critic") else 0.6
        gpus = tuple(
            wire.GpuSample(
                gpu=str(gpu),
                used_bytes=int(level.used) + self._dice.randrange(NOISE_MIB) * MIB,
                utilization_ratio=busy if level.used else 0.0,
                processes=self._processes(gpu, level, stretch) if with_processes else None,
            )
            for gpu, level in enumerate(now)
        )
        return wire.Sample(
            seq=self._seq,
            at=float(second),
            gpus=gpus,
            host=self._host(stretch, with_processes=with_processes),
            torch=self._torch(stretch, now) if self._spec.tells.probe else (),
            engines=self._engines(stretch, second) if self._spec.tells.engine_metrics else (),
        )

    def _processes(self, gpu: int, level: Level, stretch: Stretch) -> tuple[wire.GpuProcess, ...]:
        tenant = self._tenant(stretch.step, gpu)
        found: list[wire.GpuProcess] = []
        if level.used > tenant:
            context = self._spec.nature.context_bytes
            engine = max(0.0, level.used - tenant - level.reserved - context)
            found.append(self._process(WORKER_PID + gpu, stretch, level.reserved + context, "WorkerDict", gpu, "actor"))
            found.append(self._process(ENGINE_PID + gpu, stretch, engine, "VLLM::EngineCore", None, "rollout"))
        if tenant:
            found.append(wire.GpuProcess(pid=TENANT_PID, used_bytes=int(tenant), name="python"))
        return tuple(found)

    def _process(
        self, pid: int, stretch: Stretch, used: float, name: str, rank: int | None, role: str
    ) -> wire.GpuProcess:
        return wire.GpuProcess(
            pid=self._pid(pid, stretch.segment),
            used_bytes=int(used),
            name=name,
            run=self._run,
            rank=rank if self._run else None,
            role=role if self._run else None,
        )

    def _tenant(self, step: int, gpu: int) -> float:
        nature = self._spec.nature
        return nature.tenant.at(step) if gpu == nature.tenant_gpu else 0.0

    @staticmethod
    def _pid(pid: int, segment: int) -> int:
        return pid + PIDS_A_LIFE * segment

    def _host(self, stretch: Stretch, *, with_processes: bool) -> wire.HostSample:
        level, host = stretch.host, self._spec.nature.host
        over = stretch.phase == "over"
        noise = self._dice.randrange(64) * MIB
        used = int(host.base_bytes if over else level.used) + noise
        return wire.HostSample(
            memory_used_bytes=used + (int(OUTSIDE_RATIO * host.base_bytes) if host.limit_bytes else 0),
            cgroup_used_bytes=used if host.limit_bytes else None,
            shm_used_bytes=0 if over else int(level.shm),
            disk_used_bytes=int(level.disk),
            oom_kill_total=0,
            processes=self._host_processes(stretch) if with_processes and not over else None,
        )

    def _host_processes(self, stretch: Stretch) -> tuple[wire.HostProcess, ...]:
        level, segment = stretch.host, stretch.segment
        named = [(DRIVER_PID, "ray::TaskRunner", level.driver)]
        named += [(WORKER_PID + rank, "ray::WorkerDict", used) for rank, used in enumerate(level.workers)]
        named += [(ENGINE_PID + rank, "VLLM::EngineCore", used) for rank, used in enumerate(level.engines)]
        found = [
            wire.HostProcess(pid=self._pid(pid, segment), name=name, rss_bytes=int(used), run=self._run)
            for pid, name, used in named
        ]
        return tuple(sorted(found, key=lambda one: -one.rss_bytes)[:16])

    def _torch(self, stretch: Stretch, now: list[Level]) -> tuple[wire.TorchSample, ...]:
        if stretch.phase in ("start", "over"):
            return ()
        pool = self._spec.card.total_bytes * self._settings.utilization if self._spec.tells.pool_in_process else 0.0
        return tuple(
            wire.TorchSample(
                pid=self._pid(WORKER_PID + gpu, stretch.segment),
                gpu=str(gpu),
                run=self._run,
                rank=gpu,
                role="actor",
                reserved_bytes=int(level.reserved + pool),
                allocated_bytes=int(level.allocated + pool),
                alloc_retries_total=stretch.retries[gpu],
                ooms_total=0,
            )
            for gpu, level in enumerate(now)
        )

    def _engines(self, stretch: Stretch, second: int) -> tuple[wire.EngineSample, ...]:
        if stretch.phase not in AWAKE or second % 5:
            return ()
        share = (second - stretch.start) / stretch.seconds
        full = min(0.99, 0.2 + 1.1 * share if share < 0.7 else 1.1 * (1.2 - share))
        return (wire.EngineSample(engine="vllm", address="127.0.0.1:8000", run=self._run, kv_used_ratio=full),)

    # ------------------------------------------------------------ events

    def _events(self) -> list[_Told]:
        tells = self._spec.tells
        told: list[_Told] = []
        if tells.steps:
            told += [self._step(one) for one in self._story.finished]
        if tells.steps and tells.config:
            told.append(self._told(2.0, self._config(), DRIVER_PID))
        for before, after in pairwise(self._story.stretches):
            told += self._between(before, after)
        if self._story.ending is not None:
            told.append(self._last_word(self._story.ending, self._story.stretches[-1]))
        return sorted(told, key=lambda one: one.at)

    def _told(self, at: float, body: wire.EventBody, pid: int, rank: int | None = None) -> _Told:
        origin = wire.Origin(source="driver.log", pid=pid, rank=rank)
        return _Told(at, wire.Event(seq=0, at=at, body=body, run=self._run, origin=origin))

    def _config(self) -> wire.Config:
        return wire.Config(values=dict(self._spec.config), framework="verl", version="0.9.1")

    def _step(self, one: Finished) -> _Told:
        at = one.at + self._dice.uniform(*LATE_SECONDS)
        batch = one.batch
        trained = sum(seconds for phase, seconds in one.seconds.items() if phase != "validation")
        tokens = batch.response_mean * self._settings.sequences
        body = wire.Step(
            step=one.step,
            step_seconds=round(trained, 3),
            rollout_seconds=round(one.seconds["rollout"], 3),
            phase_seconds={phase: round(seconds, 3) for phase, seconds in one.seconds.items()},
            torch_reserved_peak_bytes=int(one.reserved_peak),
            torch_allocated_peak_bytes=int(one.allocated_peak),
            host_used_bytes=int(one.host.used),
            response_length_mean_tokens=batch.response_mean,
            response_length_max_tokens=batch.response_max,
            response_clip_ratio=batch.clip_ratio,
            rollout_ms_per_token=1000 * one.seconds["rollout"] / tokens,
            tokens_total=batch.tokens,
        )
        return self._told(at, body, self._pid(DRIVER_PID, one.segment))

    def _between(self, before: Stretch, after: Stretch) -> Iterator[_Told]:
        """What is printed where one phase ends and the next begins."""
        tells, at = self._spec.tells, after.start
        if tells.sleeps and tells.steps and self._settings.sleeps:
            if before.phase in AWAKE and after.phase not in AWAKE:
                for gpu in range(self._settings.gpus):
                    yield self._engine_line(at, gpu, after.segment, self._slept(before, after, gpu))
            elif after.phase in AWAKE and before.phase not in AWAKE:
                wake = wire.EngineWake(seconds=0.51, tags=("kv_cache",), gpu="0")
                yield self._engine_line(at, 0, after.segment, wake)
        if tells.debug and tells.steps:
            yield from self._memory_lines(before, after)

    def _engine_line(self, at: float, gpu: int, segment: int, body: wire.EventBody) -> _Told:
        return self._told(at + 0.3, body, self._pid(ENGINE_PID + gpu, segment))

    @staticmethod
    def _slept(before: Stretch, after: Stretch, gpu: int) -> wire.EngineSleep:
        """vLLM tells what of the whole device is in use, whoever uses it."""
        left = after.levels[gpu][0].used
        freed = max(0.0, before.levels[gpu][-1].used - left)
        return wire.EngineSleep(freed_bytes=int(freed), still_used_bytes=int(left), seconds=0.4, gpu=str(gpu))

    def _memory_lines(self, before: Stretch, after: Stretch) -> Iterator[_Told]:
        if before.phase in HEADS:
            yield self._memory_line(after.start - 0.1, HEADS[before.phase][1], before, before.levels[0][-1], None)
        if after.phase in HEADS:
            yield self._memory_line(after.start + 0.1, HEADS[after.phase][0], after, after.levels[0][0], after.phase)
        if before.phase == "update_weights" and after.phase in AWAKE:
            yield self._memory_line(after.start + 0.2, "After resume kv_cache", after, after.levels[0][0], "rollout")
            yield self._told(
                after.start + 0.2, wire.Reshard(marker="resume_kv_cache"), self._pid(WORKER_PID, after.segment), 0
            )

    def _memory_line(self, at: float, head: str, stretch: Stretch, level: Level, phase: str | None) -> _Told:
        body = wire.TorchMemory(
            reserved_bytes=int(level.reserved),
            allocated_bytes=int(level.allocated),
            device_used_bytes=int(level.used),
            device_total_bytes=self._spec.card.usable_bytes,
            at_point=head,
            phase=phase,
            gpu="0",
        )
        return self._told(at, body, self._pid(WORKER_PID, stretch.segment), 0)

    def _last_word(self, ending: Ending, last: Stretch) -> _Told:
        at, host = ending.at + self._dice.uniform(*LATE_SECONDS), self._spec.nature.host
        if ending.kind == "disk":
            return self._told(at, wire.DiskFull(reporter="ray", used_ratio=1.0), DRIVER_PID)
        if ending.kind == "host":
            limit = int(min(host.total_bytes, host.limit_bytes or host.total_bytes))
            used = int(RAY_KILLS_RATIO * limit)
            return self._told(at, wire.HostOom(reporter="ray", used_bytes=used, limit_bytes=limit), DRIVER_PID)
        pid = self._pid(WORKER_PID + (ending.gpu or 0), last.segment)
        return self._told(at, _device_oom(ending, last, self._spec.card.usable_bytes), pid, ending.gpu)


def _device_oom(ending: Ending, last: Stretch, usable: int) -> wire.DeviceOom:
    gpu = ending.gpu or 0
    if ending.kind == "wake":
        return wire.DeviceOom(error="CUDA Error: out of memory at cumem_allocator.cpp", gpu=str(gpu))
    level = last.levels[gpu][-1]
    return wire.DeviceOom(
        error="torch.OutOfMemoryError",
        tried_bytes=int(ending.tried_bytes or 0),
        total_bytes=usable,
        free_bytes=max(0, usable - int(level.used)),
        allocated_bytes=int(level.allocated),
        reserved_unallocated_bytes=max(0, int(level.reserved - level.allocated)),
        local_index=0,
        gpu=str(gpu),
    )
