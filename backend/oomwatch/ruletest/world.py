"""Series of a rule test to the messages that agents would have sent."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from oomwatch import __version__, wire
from oomwatch.trace import Line

if TYPE_CHECKING:
    from oomwatch.ruletest.testfile import RuleTest, Series, TimedEvent

GIB = 2**30
START = 1_200_000_000.0
HEARTBEAT_SECONDS = 10.0  # between two readings an agent is heard: what is missing is told as missing
Scope = Literal["gpu", "torch", "host", "step", "phase", "engine"]


class Kind(NamedTuple):
    """What a series is: of which record, its field, and what its values are multiplied by (None: by the capacity)."""

    scope: Scope
    field: str
    factor: float | None = 1.0


LABELS_OF: dict[Scope, tuple[str, ...]] = {
    "gpu": ("node", "gpu"),
    "torch": ("node", "gpu", "pid", "rank", "role", "run"),
    "host": ("node",),
    "step": ("node", "run"),
    "phase": ("node", "run", "phase"),
    "engine": ("node", "engine", "run"),
}


def _series() -> dict[str, Kind]:
    """Every series by name: fields of the wire's records, sizes also in GiB, and shares of a card or the host."""
    kinds = {
        "gpu_used_bytes": Kind("gpu", "used_bytes"),
        "gpu_used_ratio": Kind("gpu", "used_bytes", None),
        "gpu_utilization_ratio": Kind("gpu", "utilization_ratio"),
        "gpu_temperature_celsius": Kind("gpu", "temperature_celsius"),
        "gpu_power_watts": Kind("gpu", "power_watts"),
        "gpu_lost": Kind("gpu", "status"),
        "host_memory_ratio": Kind("host", "memory_used_bytes", None),
        "torch_reserved_ratio": Kind("torch", "reserved_bytes", None),
        "phase_seconds": Kind("phase", "phase_seconds"),
    }
    for field in ("reserved_bytes", "allocated_bytes", "active_bytes", "inactive_split_bytes", "alloc_retries_total"):
        kinds[f"torch_{field}"] = Kind("torch", field)
    for name in _numbers(wire.HostSample):
        kinds[f"host_{name}"] = Kind("host", name)
    for name in _numbers(wire.Step):
        kinds[name] = Kind("step", name)
    for name in _numbers(wire.EngineSample):
        kinds[f"engine_{name}"] = Kind("engine", name)
    sizes = {name: kind for name, kind in kinds.items() if name.endswith("_bytes")}
    return kinds | {name.removesuffix("_bytes") + "_gib": kind._replace(factor=GIB) for name, kind in sizes.items()}


def _numbers(kind: type[msgspec.Struct]) -> list[str]:
    ends = ("_bytes", "_ratio", "_seconds", "_total", "_tokens", "_per_token", "_running", "_waiting", "step")
    names = (field.name for field in msgspec.structs.fields(kind))
    return [name for name in names if (name.endswith(ends) or name == "tokens_total") and name != "phase_seconds"]


SERIES = _series()
_WHOLE = ("_bytes", "_total", "_running", "_waiting", "step")


class Track(NamedTuple):
    """A series with its labels filled in, and its values by their times in seconds."""

    kind: Kind
    labels: dict[str, str]
    interval: float
    values: list[float | None]

    @property
    def node(self) -> str:
        return self.labels["node"]


class Told(NamedTuple):
    """What one series says at one time. `place` counts its values."""

    track: Track
    place: int
    value: float


Moment: TypeAlias = "tuple[float, str, wire.Sample | wire.Event]"


def lines_of(test: "RuleTest", until: float) -> Iterator[Line]:
    """What happens up to `until` seconds, in order."""
    world = _World(test)
    yield from world.hellos()
    now = 0.0
    for at, told in world.told(until):
        if at > now:
            yield Line(advance=START + at)
        now = at
        yield told
    yield Line(advance=START + max(now, until))


class _World:
    def __init__(self, test: "RuleTest") -> None:
        self._test = test
        self._tracks = [_track(test, one) for one in test.input_series]
        named = [track.node for track in self._tracks] + [event.node for event in test.events]
        self._nodes = list(dict.fromkeys(named)) or ["n"]
        self._seq = 0

    def hellos(self) -> Iterator[Line]:
        for node in self._nodes:
            tracks = [track for track in self._tracks if track.node == node]
            labels = dict.fromkeys(track.labels["gpu"] for track in tracks if "gpu" in track.labels)
            gpus = tuple(
                wire.GpuFacts(gpu=gpu, uuid=f"{node}-{gpu}", name="GPU", total_bytes=int(self._test.capacity))
                for gpu in labels or {"0": None}
            )
            host = wire.HostFacts(
                memory_total_bytes=int(self._test.host_memory),
                disk_path="/tmp/ray",  # noqa: S108 - where Ray spills to
                disk_total_bytes=int(self._test.disk),
            )
            hello = wire.Hello(
                protocol=wire.PROTOCOL_VERSION,
                agent_version=__version__,
                node=node,
                session="test",
                sent_at=START,
                interval_seconds=min((track.interval for track in tracks), default=1.0),
                facts=wire.NodeFacts(gpus=gpus, host=host),
                run=self._test.run,
            )
            yield Line(now=START, node=node, message=hello)

    def told(self, until: float) -> Iterator[tuple[float, Line]]:
        """Each message with its time in seconds, in order."""
        told = [*self._of_series(until), *self._of_events(until)]
        for at, node, message in sorted(told, key=lambda one: one[0]):
            self._seq += 1
            yield at, Line(now=START + at, node=node, message=msgspec.structs.replace(message, seq=self._seq))

    def _of_events(self, until: float) -> Iterator[Moment]:
        for event in self._test.events:
            if event.at <= until:
                yield float(event.at), event.node, _event(event)

    def _of_series(self, until: float) -> Iterator[Moment]:
        for node in self._nodes:
            moments = _moments([track for track in self._tracks if track.node == node], until)
            for at, following in pairwise([*moments, float("inf")]):
                told = moments[at]
                yield at, node, _sample(at, told)
                yield from ((at, node, step) for step in _steps(at, told))
                heard_until = at + max(one.track.interval for one in told)
                yield from _heartbeats(at, min(following, heard_until, until), node)


def _moments(tracks: Sequence[Track], until: float) -> dict[float, list[Told]]:
    """What is told at each time, in order of time."""
    moments: dict[float, list[Told]] = {}
    for track in tracks:
        for place, value in enumerate(track.values):
            at = place * track.interval
            if value is not None and at <= until:
                moments.setdefault(at, []).append(Told(track, place, value))
    return dict(sorted(moments.items()))


def _heartbeats(at: float, until: float, node: str) -> Iterator[tuple[float, str, wire.Sample]]:
    beat = at + HEARTBEAT_SECONDS
    while beat < until:
        yield beat, node, wire.Sample(seq=0, at=START + beat)
        beat += HEARTBEAT_SECONDS


def _track(test: "RuleTest", series: "Series") -> Track:
    kind = SERIES[series.series.name]
    labels = {"node": "n"} | series.series.labels
    if kind.scope in ("gpu", "torch"):
        labels.setdefault("gpu", "0")
    if kind.scope in ("step", "phase"):
        labels.setdefault("run", test.run or "r")
    whole = float(test.host_memory if kind.scope == "host" else test.capacity)
    factor = whole if kind.factor is None else kind.factor
    values = [None if value is None else value * factor for value in series.values.values]
    return Track(kind, labels, float(series.interval or test.interval), values)


def _of_scope(told: Sequence[Told], scope: Scope, *labels: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """The fields told of each subject of a kind, by its labels."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for track, _, value in told:
        if track.kind.scope == scope:
            key = tuple(track.labels.get(label, "") for label in labels)
            fields = found.setdefault(key, {})
            fields[track.kind.field] = round(value) if track.kind.field.endswith(_WHOLE) else value
    return found


def _sample(at: float, tracks: Sequence[Told]) -> wire.Sample:
    gpus = [_gpu(gpu, fields) for (gpu,), fields in _of_scope(tracks, "gpu", "gpu").items()]
    host = _of_scope(tracks, "host").get(())
    torch = [
        wire.TorchSample(
            pid=int(pid or 1), gpu=gpu, rank=int(rank) if rank else None, role=role or None, run=run or None, **fields
        )
        for (gpu, pid, rank, role, run), fields in _of_scope(
            tracks, "torch", "gpu", "pid", "rank", "role", "run"
        ).items()
    ]
    engines = [
        wire.EngineSample(engine=engine or "vllm", address="127.0.0.1:8000", run=run or None, **fields)
        for (engine, run), fields in _of_scope(tracks, "engine", "engine", "run").items()
    ]
    return wire.Sample(
        seq=0,
        at=START + at,
        gpus=tuple(gpus),
        host=wire.HostSample(**host) if host else None,
        torch=tuple(torch),
        engines=tuple(engines),
    )


def _gpu(gpu: str, fields: dict[str, Any]) -> wire.GpuSample:
    lost = fields.pop("status", 0)
    return wire.GpuSample(gpu=gpu, status="lost") if lost else wire.GpuSample(gpu=gpu, **fields)


def _steps(at: float, told: Sequence[Told]) -> Iterator[wire.Event]:
    """One step of each run of which any figure is told, numbered from 1 where no series `step` numbers them."""
    phases = _of_scope(told, "phase", "run", "phase")
    fields_of = _of_scope(told, "step", "run")
    places = {one.track.labels["run"]: one.place for one in told if one.track.kind.scope in ("step", "phase")}
    for run, place in places.items():
        seconds = {phase: fields["phase_seconds"] for (name, phase), fields in phases.items() if name == run}
        fields = {"step": place + 1} | fields_of.get((run,), {})
        yield wire.Event(
            seq=0, at=START + at, run=run, body=wire.Step(phase_seconds=seconds, **fields),
            origin=wire.Origin(source="test"),
        )  # fmt: skip


def _event(event: "TimedEvent") -> wire.Event:
    origin = wire.Origin(source="test", pid=event.pid)
    return wire.Event(seq=0, at=START + float(event.at), body=event.event, run=event.run, origin=origin)
