"""Which sources this agent has: the only place that knows them all. Each is imported when it is wanted."""

import functools
import logging
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch_agent.cards import makers
from oomwatch_agent.own_patterns import OwnPatterns
from oomwatch_agent.probe.asking import Asking
from oomwatch_agent.purse import Purse
from oomwatch_agent.settings import AgentSettings
from oomwatch_agent.source import Begun, InSteps, Looking, Reading, Sight, Source, SourceMissingError

logger = logging.getLogger(__name__)


DEMO = "demo"  # the scenario, and the node's name, where there is nothing to watch


def decided(settings: AgentSettings) -> AgentSettings:
    """The settings with "auto" of `simulate` replaced by what is so on this machine. Says in the log what it is."""
    if settings.simulate == "auto" and makers.any_is_here():
        return msgspec.structs.replace(settings, simulate="off")
    if settings.simulate == "auto":
        node = DEMO if settings.node == socket.gethostname() else settings.node
        logger.warning("No GPU was found here (no driver of any maker): showing a simulated node called %s.", node)
        return msgspec.structs.replace(settings, simulate=DEMO, node=node)
    if settings.simulate != "off":
        logger.warning("nothing of this machine is watched: node %s is a simulation", settings.node)
    return settings


def sources(settings: AgentSettings, asking: Asking | None = None, purse: Purse | None = None) -> list[Source]:
    """The sources that the settings (`decided`) ask for. `asking`: the way to ask something of probes.

    `purse`: what the reading of logs may cost.
    """
    if settings.simulate != "off":
        return [_simulation(settings, settings.simulate)]
    # Ray's own files before the driver's log, which repeats them with less in it (dedup.py keeps what comes first).
    own = OwnPatterns(settings.patterns) if settings.patterns else None
    return [
        *_accelerators(),
        _host(),
        *_engines(settings),
        *_probe(settings, asking),
        *_ray(settings, own, purse),
        *_logs(settings, own, purse),
        *_slurm(settings),
    ]


def _simulation(settings: AgentSettings, scenario: str) -> Source:
    from oomwatch_agent.simulated import SimulatedSource  # noqa: PLC0415 - memory: most agents simulate nothing

    return SimulatedSource(
        scenario,
        gpus=settings.simulate_gpus,
        seed=settings.simulate_seed,
        speed=settings.simulate_speed,
        run=settings.run,
    )


def _accelerators() -> list[Source]:
    """Each maker's in a source of its own, so that one driver that hangs is not the others' trouble.

    NVIDIA's are looked for wherever no other is: they say what is missing. On a node with several makers' cards those
    of the second and third have labels of their own ("amd-0"), since every driver counts from 0.
    """
    others = makers.others()
    sources: list[Source] = []
    if makers.nvidia_is_here() or not others:
        sources.append(FirstThatWorks([_nvml, _nvidia_smi], "NVIDIA GPU" if others else "GPU"))
    for maker in others:
        prefix = maker.prefix if sources else ""
        sources.append(FirstThatWorks([functools.partial(way, prefix) for way in maker.ways], maker.what))
    return sources


def _nvml() -> Source:
    from oomwatch_agent.cards.nvml import NvmlSource  # noqa: PLC0415

    return NvmlSource()


def _nvidia_smi() -> Source:
    from oomwatch_agent.cards.smi import NvidiaSmiSource  # noqa: PLC0415

    return NvidiaSmiSource()


def _host() -> Source:
    from oomwatch_agent.host import HostSource  # noqa: PLC0415

    return HostSource()


def _engines(settings: AgentSettings) -> list[Source]:
    if settings.engine_metrics == ("off",):
        return []
    from oomwatch_agent.engines.metrics import EngineMetricsSource  # noqa: PLC0415

    return [EngineMetricsSource(settings.engine_metrics, settings.run)]


def _probe(settings: AgentSettings, asking: Asking | None) -> list[Source]:
    if settings.probe == "off":
        return []
    from oomwatch_agent.probe.source import ProbeSource  # noqa: PLC0415

    return [ProbeSource(settings.probe, asking=asking)]


def _logs(settings: AgentSettings, own: OwnPatterns | None, purse: Purse | None) -> list[Source]:
    if not settings.log:
        return []
    from oomwatch_agent.logsource import LogSource  # noqa: PLC0415

    return [LogSource(path, settings.log_from, settings.run, own=own, purse=purse) for path in settings.log]


def _ray(settings: AgentSettings, own: OwnPatterns | None, purse: Purse | None) -> list[Source]:
    if settings.ray == "off":
        return []
    from oomwatch_agent.ray_session import RaySource  # noqa: PLC0415

    return [RaySource(settings.ray, settings.log_from, settings.run, own=own, purse=purse)]


def _slurm(settings: AgentSettings) -> list[Source]:
    if settings.slurm == "off":
        return []
    from oomwatch_agent.slurm_jobs import SlurmSource  # noqa: PLC0415

    return [SlurmSource(Path(settings.slurm))]


class FirstThatWorks:
    """Several ways to read the same thing, best first: it is the first that can be opened; no other is made."""

    def __init__(self, ways: Sequence[Callable[[], Source]], what: str = "GPU") -> None:
        self._ways = ways
        self._what = what
        self._chosen = ways[0]()
        self._missing: tuple[wire.SourceFacts, ...] = ()
        self._eye: Looking | None = None  # the chosen one, where it can look
        self._in_steps: InSteps | None = None  # and where it can be read so

    @property
    def name(self) -> str:
        return self._chosen.name

    def open(self) -> wire.NodeFacts:
        self._missing, self._eye, self._in_steps = (), None, None
        for way in self._ways:
            self._chosen = way()
            try:
                facts = self._with_missing(self._chosen.open())
            except SourceMissingError as error:
                self._chosen.close()
                self._missing += (
                    wire.SourceFacts(name=self.name, state="missing", detail=str(error)[: wire.TEXT_CHARS_MAX]),
                )
                continue
            # Once, and not at each look: to ask a protocol costs as much as a look.
            self._eye = self._chosen if isinstance(self._chosen, Looking) else None
            self._in_steps = self._chosen if isinstance(self._chosen, InSteps) else None
            return facts
        self._chosen = self._ways[0]()
        reasons = "; ".join(f"{source.name}: {source.detail}" for source in self._missing)
        raise SourceMissingError(f"no {self._what} is watched on this node, only the rest ({reasons})")

    def read(self, *, slow: bool) -> Reading:
        return self._told(self._chosen.read(slow=slow))

    def begin(self) -> Begun | None:
        return self._in_steps.begin() if self._in_steps is not None else None

    def end(self, begun: Begun) -> Reading:
        assert self._in_steps is not None  # noqa: S101 - it has begun
        return self._told(self._in_steps.end(begun))

    def _told(self, reading: Reading) -> Reading:
        if reading.facts is None:
            return reading
        return msgspec.structs.replace(reading, facts=self._with_missing(reading.facts))

    @property
    def looks_an_interval(self) -> int:
        return self._eye.looks_an_interval if self._eye is not None else 1

    def look(self) -> Sequence[Sight]:
        return self._eye.look() if self._eye is not None else ()

    def close(self) -> None:
        self._chosen.close()

    def _with_missing(self, facts: wire.NodeFacts) -> wire.NodeFacts:
        """The facts of the one that works, which also tell why the better ones do not."""
        if not self._missing:
            return facts
        own = facts.sources or (wire.SourceFacts(name=self.name, state="ok"),)
        return msgspec.structs.replace(facts, sources=(*self._missing, *own))
