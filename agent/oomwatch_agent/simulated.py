"""A simulated node: GPUs, host and logs of runs that exist in `scenario` only. Stands in for every other source."""

import functools
import math
import time
from collections.abc import Callable, Iterator

from oomwatch import wire
from oomwatch_agent.logs.reader import LineReader
from oomwatch_agent.scenario import (
    CARD_RESERVED_GIB,
    CARD_TOTAL_GIB,
    DEMO,
    DISK_IDLE_GIB,
    DISK_TOTAL_GIB,
    HOST_IDLE_GIB,
    HOST_TOTAL_GIB,
    SHM_TOTAL_GIB,
    SPILL_FOLDER,
    STORIES,
    Story,
    moments,
)
from oomwatch_agent.simulated_config import configured
from oomwatch_agent.simulated_engine import EngineServer
from oomwatch_agent.simulated_probe import Allocator, held, introductions
from oomwatch_agent.simulated_verl import Cast, lines_at_end, lines_at_start
from oomwatch_agent.source import Found, Reading

GIB = 1024**3
_IDLE_WATTS, _BUSY_WATTS = 110.0, 640.0


class SimulatedSource:
    """GPUs, host, log, probes and engines of a scenario. The clock is only ever read for the time since `open`."""

    name = "simulated"

    def __init__(
        self,
        scenario: str,
        *,
        gpus: int,
        seed: int,
        speed: float = 1.0,
        run: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = f"{scenario}, seed {seed}, speed {speed:g}"
        self._gpu_count = gpus
        self._speed = speed
        self._clock = clock
        self._started_at = 0.0
        self._make_runs = functools.partial(_runs, scenario, gpus=gpus, seed=seed, speed=speed, name=run)
        self._runs: list[_Run] = []

    def open(self) -> wire.NodeFacts:
        self._runs = self._make_runs()
        self._started_at = self._clock()
        return wire.NodeFacts(
            gpus=tuple(_gpu_facts(gpu) for gpu in range(self._gpu_count)),
            host=wire.HostFacts(
                memory_total_bytes=_bytes(HOST_TOTAL_GIB),
                swap_total_bytes=0,
                shm_total_bytes=_bytes(SHM_TOTAL_GIB),
                disk_path=SPILL_FOLDER,
                disk_total_bytes=_bytes(DISK_TOTAL_GIB),
                cpu_count=128,
                hostname="simulated",
            ),
            sources=(wire.SourceFacts(name=self.name, state="ok", detail=f"simulation: {self._label}"),),
        )

    def read(self, *, slow: bool) -> Reading:
        when = (self._clock() - self._started_at) * self._speed
        found = tuple(found for run in self._runs for found in run.advance(when))
        gpus = tuple(run.gpu_sample(gpu, when, slow=slow) for run in self._runs for gpu in run.gpus)
        return Reading(
            gpus=gpus,
            host=_host_sample(self._runs, slow=slow),
            torch=tuple(reading for run in self._runs for reading in run.torch_samples(when)),
            engines=tuple(reading for run in self._runs for reading in run.engine_samples(when)),
            found=found,
        )

    def close(self) -> None:
        self._runs = []


def _runs(scenario: str, *, gpus: int, seed: int, speed: float, name: str | None) -> list["_Run"]:
    """The runs of a scenario, each on its GPUs. The demo's second run wants GPUs of its own."""
    if scenario != "demo":
        return [_Run(name or f"simulated-{scenario}", STORIES[scenario], gpus=range(gpus), seed=seed, speed=speed)]
    half = (gpus + 1) // 2
    shares = [range(half), range(half, gpus)] if gpus > 1 else [range(0), range(1)]
    return [
        _Run(title, story, gpus=share, seed=seed, speed=speed)
        for (title, story), share in zip(DEMO.items(), shares, strict=True)
        if len(share)
    ]


class _Run:
    """One simulated run: which GPUs it has, and where its story stands."""

    def __init__(self, name: str, story: Story, *, gpus: range, seed: int, speed: float) -> None:
        self.name = name
        self.gpus = gpus
        self._speed = speed
        self._story = moments(story, f"{seed} {name}")
        self._config = configured(story, len(gpus))
        self._reader = LineReader()
        self._line_number = 0
        self._attempt = 0  # the life whose processes are there
        self._allocators: list[Allocator] = []
        self._servers: list[EngineServer] = []
        self.moment = next(self._story)

    @property
    def cast(self) -> Cast:
        """The processes of the run's present life."""
        return Cast(20_000 + 10_000 * self.gpus.start + 1_000 * (self.moment.attempt % 9), len(self.gpus))

    def advance(self, when: float) -> Iterator[Found]:
        """Go on to a time of the story, and give the events that its log lines say on the way."""
        while when >= self.moment.end:
            yield from self._print(lines_at_end(self.moment, self.cast, self._speed))
            self.moment = next(self._story)
            yield from self._print(lines_at_start(self.moment, self.cast))
        if self._attempt != self.moment.attempt:
            yield from self._start_life()

    def _start_life(self) -> Iterator[Found]:
        """The run's processes start: the driver prints the configuration, and the probes introduce themselves."""
        self._attempt, cast = self.moment.attempt, self.cast
        uuids = [_uuid(gpu) for gpu in self.gpus]
        self._allocators = [
            Allocator(rank, pid, uuid, self.name)
            for rank, (pid, uuid) in enumerate(zip(cast.ranks, uuids, strict=True))
        ]
        self._servers = [EngineServer(gpu, len(self.gpus), self.name) for gpu in self.gpus]
        yield Found(body=self._config, origin=wire.Origin(source="simulated", pid=cast.driver), run=self.name)
        yield from introductions(cast, uuids, self.name)

    def _print(self, lines: Iterator[str]) -> Iterator[Found]:
        for line in lines:
            self._line_number += 1
            for event in self._reader.feed(line, self._line_number):
                yield Found(body=event.body, origin=event.origin("simulated"), run=self.name)

    def gpu_sample(self, gpu: int, when: float, *, slow: bool) -> wire.GpuSample:
        moment = self.moment
        used_gib = moment.gib_at(when, gpu)
        busy = max(0.0, min(1.0, moment.utilization + 0.03 * math.sin(3.3 * when + gpu)))
        return wire.GpuSample(
            gpu=str(gpu),
            used_bytes=_bytes(used_gib),
            utilization_ratio=round(busy, 2),
            power_watts=round(_IDLE_WATTS + (_BUSY_WATTS - _IDLE_WATTS) * busy, 1),
            temperature_celsius=round(36 + 30 * busy),
            ecc_uncorrected_total=0,
            processes=self._gpu_processes(gpu, used_gib) if slow else None,
        )

    def torch_samples(self, when: float) -> Iterator[wire.TorchSample]:
        """What the probe in each rank reads."""
        if self.moment.phase != "down":
            for gpu, allocator in zip(self.gpus, self._allocators, strict=True):
                yield allocator.see(self.moment, self.moment.gib_at(when, gpu))

    def engine_samples(self, when: float) -> Iterator[wire.EngineSample]:
        """What the engines' pages say, once the engines are up."""
        if self.moment.phase not in ("down", "start"):
            yield from (server.see(self.moment, when) for server in self._servers)

    def _gpu_processes(self, gpu: int, used_gib: float) -> tuple[wire.GpuProcess, ...]:
        if self.moment.phase == "down":
            return ()
        rank, by_process = gpu - self.gpus.start, held(self.moment, used_gib)
        return tuple(
            wire.GpuProcess(pid=pid, used_bytes=_bytes(gib), name=name, run=self.name, rank=train_rank, role=role)
            for pid, gib, name, role, train_rank in (
                (self.cast.ranks[rank], by_process.trainer_gib, "ray::WorkerDict", "actor", rank),
                (self.cast.engines[rank], by_process.engine_gib, "VLLM::Worker", "rollout", None),
            )
        )

    def host_processes(self) -> list[wire.HostProcess]:
        """Its largest processes: the driver grows, each rank has its share of the rest."""
        if self.moment.phase == "down":
            return []
        rest = self.moment.host_gib * 0.4 / len(self.gpus)
        sizes = [(self.cast.driver, "ray::TaskRunner", self.moment.host_gib * 0.6)]
        sizes += [(pid, "ray::WorkerDict", rest) for pid in self.cast.ranks]
        return [wire.HostProcess(pid=pid, name=name, rss_bytes=_bytes(gib), run=self.name) for pid, name, gib in sizes]


def _gpu_facts(gpu: int) -> wire.GpuFacts:
    return wire.GpuFacts(
        gpu=str(gpu),
        uuid=_uuid(gpu),
        name="Simulated H100 80GB HBM3",
        total_bytes=_bytes(CARD_TOTAL_GIB),
        reserved_bytes=_bytes(CARD_RESERVED_GIB),
        pci_bus_id=f"00000000:{gpu + 16:02X}:00.0",
        power_limit_watts=700.0,
        driver_version="simulated",
    )


def _uuid(gpu: int) -> str:
    return f"GPU-51e0a7ed-0000-4000-8000-{gpu:012d}"


def _host_sample(runs: list[_Run], *, slow: bool) -> wire.HostSample:
    used = min(HOST_TOTAL_GIB - 2, HOST_IDLE_GIB + sum(run.moment.host_gib for run in runs))
    processes = [process for run in runs for process in run.host_processes()] if slow else None
    return wire.HostSample(
        memory_used_bytes=_bytes(used),
        swap_used_bytes=0,
        shm_used_bytes=_bytes(sum(run.moment.shm_gib for run in runs)),
        disk_used_bytes=_bytes(DISK_IDLE_GIB + sum(run.moment.spilled_gib for run in runs)),
        oom_kill_total=0,
        memory_pressure_some_ratio=0.0,
        processes=tuple(sorted(processes, key=lambda process: -process.rss_bytes)) if processes is not None else None,
    )


def _bytes(gib: float) -> int:
    return round(gib * GIB)
