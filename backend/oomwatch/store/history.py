"""Named figures over time: what the API's charts are drawn from. SERIES lists them, one line each."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, isnan
from typing import NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from oomwatch import wire
from oomwatch.store import chunks, columns, events, stretches
from oomwatch.store.buckets import Buckets
from oomwatch.store.rows import pieces
from oomwatch.store.schema import nodes, subjects
from oomwatch.store.tiers import RAW_MS, TIERS, Rolled

Values = tuple[Sequence[int], Sequence[float]]  # milliseconds and values of equal length, in the order of time
Part: TypeAlias = Values | Rolled
Place: TypeAlias = tuple[str, str]  # node and gpu
SLOW_SECONDS = 10.0  # between two slow reads of an agent
FRESH_MS = 60_000  # while a probe tells, log lines of the same GPU are not mixed in (fleet.PROBE_FRESH_SECONDS)
_hello_decoder = msgspec.json.Decoder(wire.Hello)


class Series(Struct, frozen=True, kw_only=True):
    """One figure over time. The four columns are of equal length; times are the beginnings of buckets.

    `step_seconds` is the width of a bucket in force, which may be more than was asked for. In a figure that is sampled,
    a bucket without a value is a gap and holds None; one that events give has a value for every time.
    """

    name: str
    unit: str  # as in wire.Transition
    labels: dict[str, str]
    step_seconds: float
    times: tuple[float, ...] = ()
    min: tuple[float | None, ...] = ()
    max: tuple[float | None, ...] = ()
    mean: tuple[float | None, ...] = ()


class Found(NamedTuple):
    """A figure in any number of parts, and the width of the coarsest: a bucket must be some of these wide.

    What is in the parts is the figure times `divisor`: a chart's few points are divided, not the many readings.
    """

    width_ms: int
    parts: Iterable[Part]
    divisor: float = 1.0


class _Kind(Protocol):
    """Where a figure comes from."""

    @property
    def unit(self) -> str: ...

    @property
    def sampled(self) -> bool: ...

    def check(self, labels: Mapping[str, str]) -> str | None:
        """What is wrong with these labels, or None."""

    def shortest_step(self, connection: Connection, labels: Mapping[str, str]) -> float:
        """Seconds below which a bucket would be empty for no other reason than the pace of the readings."""

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float, step_ms: int) -> Found:
        """The figure from `start` to `end`, fine enough for buckets of that width where it is still to be had."""


class _Reading(Struct, frozen=True):
    """A field of the samples of a GPU, or of the host; `share` divides by the GPU's usable memory."""

    unit: str
    field: str
    of_gpu: bool = True
    share: bool = False
    sampled: bool = True

    def check(self, labels: Mapping[str, str]) -> str | None:
        needed = {"node", "gpu"} if self.of_gpu else {"node"}
        return None if set(labels) == needed else f"it needs the labels {' and '.join(sorted(needed, reverse=True))}"

    def shortest_step(self, connection: Connection, labels: Mapping[str, str]) -> float:
        hello = _hello(connection, labels["node"])
        return 2 * hello.interval_seconds if hello else 0.0  # twice: a sample a little late is no gap

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float, step_ms: int) -> Found:
        place = labels["node"], labels["gpu"] if self.of_gpu else chunks.HOST
        return self.read_several(connection, [place], start, end, step_ms)[place]

    def read_several(
        self, connection: Connection, places: Sequence[Place], start: float, end: float, step_ms: int
    ) -> dict[Place, Found]:
        """The same of several at once, with few questions to the database. Those that it knows nothing of are empty."""
        ids = _subject_ids(connection, places)
        found = stretches.of(
            connection, list(ids.values()), round(start * 1000), round(end * 1000), _wanted_ms(step_ms)
        )
        field = columns.field_index(chunks.all_fields_of(places[0][1]), self.field) if places else 0
        parts: dict[int, list[Part]] = {subject: [] for subject in found}
        for subject, part in stretches.fields(connection, found, field):
            parts[subject].append(part if isinstance(part, Rolled) else (part.at_ms, part.values[0]))
        divisors = self._divisors(connection, places)
        return {
            place: Found(found[ids[place]].width_ms, parts[ids[place]], divisors[place])
            if place in ids and not isnan(divisors[place])
            else Found(RAW_MS, ())
            for place in places
        }

    def _divisors(self, connection: Connection, places: Sequence[Place]) -> dict[Place, float]:
        """What stored numbers are divided by."""
        fields = chunks.all_fields_of(places[0][1]) if places else ()
        per_unit = float(fields[columns.field_index(fields, self.field)].per_unit) if fields else 1.0
        if not self.share:
            return dict.fromkeys(places, per_unit)
        hellos = {node: _hello(connection, node) for node in dict.fromkeys(node for node, _ in places)}
        return {(node, gpu): per_unit * _usable_bytes(hellos[node], gpu) for node, gpu in places}


class _Slow(_Reading, frozen=True):
    """A figure that an agent tells at its slow reads only: of rollout engines, and of processes."""

    def shortest_step(self, connection: Connection, labels: Mapping[str, str]) -> float:
        return max(2 * SLOW_SECONDS, _Reading.shortest_step(self, connection, labels))


_ReadFigures = Callable[[Connection, str, Mapping[str, str], float, float], Iterator[tuple[list[int], list[float]]]]


class _Figure(Struct, frozen=True):
    """A field of one kind of event."""

    unit: str
    field: str
    figures: _ReadFigures
    allowed: frozenset[str]
    sampled: bool = False

    def check(self, labels: Mapping[str, str]) -> str | None:
        if set(labels) <= self.allowed and {"run", "node"} & set(labels):
            return None
        return f"it needs the label run or node, and knows {', '.join(sorted(self.allowed, reverse=True))}"

    def shortest_step(self, connection: Connection, labels: Mapping[str, str]) -> float:  # noqa: ARG002
        return 0.0

    def read(
        self,
        connection: Connection,
        labels: Mapping[str, str],
        start: float,
        end: float,
        step_ms: int,  # noqa: ARG002
    ) -> Found:
        return Found(RAW_MS, self.figures(connection, self.field, labels, start, end))


class _Torch(Struct, frozen=True):
    """torch's allocator: of a GPU as its probes said, and as log lines said at times when no probe did."""

    unit: str
    field: str
    sampled: bool = False

    @property
    def _logged(self) -> _Figure:
        return _Figure(self.unit, self.field, events.torch_figures, frozenset({"run", "node", "gpu"}))

    def check(self, labels: Mapping[str, str]) -> str | None:
        return self._logged.check(labels)

    def shortest_step(self, connection: Connection, labels: Mapping[str, str]) -> float:  # noqa: ARG002
        return 0.0

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float, step_ms: int) -> Found:
        told = Found(RAW_MS, ())
        if set(labels) == {"node", "gpu"}:
            margin = FRESH_MS / 1000
            told = _Reading(self.unit, self.field).read(connection, labels, start - margin, end + margin, step_ms)
        logged = self._logged.read(connection, labels, start, end, step_ms)
        return Found(told.width_ms, _apart(told.parts, logged.parts))  # bytes and counts: both are kept as they are


def _apart(told: Iterable[Part], logged: Iterable[Part]) -> Iterator[Part]:
    """What probes told, and of what was logged that which was logged while none did."""
    probed: list[int] = []
    for part in told:
        at_ms, values = (part.at_ms, part.high) if isinstance(part, Rolled) else part
        probed += [moment for moment, value in zip(at_ms, values, strict=True) if not isnan(value)]
        yield part
    probed.sort()
    for part in logged:
        at_ms, values = (part.at_ms, part.high) if isinstance(part, Rolled) else part
        kept = [index for index, moment in enumerate(at_ms) if not _is_near(moment, probed)]
        yield [at_ms[index] for index in kept], [values[index] for index in kept]


def _wanted_ms(step_ms: int) -> int:
    """The widest tier of which buckets of that width are made; one that would make them much wider is not wanted."""
    fitting = [tier.width_ms for tier in TIERS if step_ms % tier.width_ms == 0 or step_ms >= 2 * tier.width_ms]
    return max(fitting, default=RAW_MS)


def _subject_ids(connection: Connection, places: Iterable[Place]) -> dict[Place, int]:
    wanted = set(places)
    found: dict[Place, int] = {}
    for names in pieces(dict.fromkeys(node for node, _ in places)):
        for row in connection.execute(select(subjects).where(subjects.c.node.in_(names))):
            if (row.node, row.gpu) in wanted:
                found[row.node, row.gpu] = row.id
    return found


def _is_near(moment_ms: int, probed_ms: Sequence[int]) -> bool:
    """Whether a probe told at about that time. Its moments are in order."""
    after = bisect_left(probed_ms, moment_ms - FRESH_MS)
    return after < len(probed_ms) and probed_ms[after] <= moment_ms + FRESH_MS


def _step(unit: str, field: str) -> _Figure:
    return _Figure(unit, field, events.step_figures, frozenset({"run", "node"}))


SERIES: dict[str, _Kind] = {
    "gpu_used_bytes": _Reading("bytes", "used_bytes"),
    "gpu_used_ratio": _Reading("ratio", "used_bytes", share=True),
    "gpu_utilization_ratio": _Reading("ratio", "utilization_ratio"),
    "gpu_power_watts": _Reading("watts", "power_watts"),
    "gpu_temperature_celsius": _Reading("celsius", "temperature_celsius"),
    "gpu_ecc_uncorrected_total": _Reading("count", "ecc_uncorrected_total"),
    "host_memory_used_bytes": _Reading("bytes", "memory_used_bytes", of_gpu=False),
    "host_cgroup_used_bytes": _Reading("bytes", "cgroup_used_bytes", of_gpu=False),
    "host_swap_used_bytes": _Reading("bytes", "swap_used_bytes", of_gpu=False),
    "host_shm_used_bytes": _Reading("bytes", "shm_used_bytes", of_gpu=False),
    "host_disk_used_bytes": _Reading("bytes", "disk_used_bytes", of_gpu=False),
    "host_memory_pressure_some_ratio": _Reading("ratio", "memory_pressure_some_ratio", of_gpu=False),
    "host_memory_pressure_full_ratio": _Reading("ratio", "memory_pressure_full_ratio", of_gpu=False),
    "step_seconds": _step("seconds", "step_seconds"),
    "rollout_seconds": _step("seconds", "rollout_seconds"),
    "reshard_seconds": _step("seconds", "reshard_seconds"),
    "torch_reserved_peak_bytes": _step("bytes", "torch_reserved_peak_bytes"),
    "torch_allocated_peak_bytes": _step("bytes", "torch_allocated_peak_bytes"),
    "trainer_host_used_bytes": _step("bytes", "host_used_bytes"),
    "response_length_mean_tokens": _step("tokens", "response_length_mean_tokens"),
    "response_length_max_tokens": _step("tokens", "response_length_max_tokens"),
    "response_clip_ratio": _step("ratio", "response_clip_ratio"),
    "rollout_ms_per_token": _step("milliseconds", "rollout_ms_per_token"),
    "tokens_total": _step("tokens", "tokens_total"),
    "torch_reserved_bytes": _Torch("bytes", "reserved_bytes"),
    "torch_allocated_bytes": _Torch("bytes", "allocated_bytes"),
    "torch_device_used_bytes": _Figure(
        "bytes", "device_used_bytes", events.torch_figures, frozenset({"run", "node", "gpu"})
    ),
    "torch_alloc_retries_total": _Reading("count", "alloc_retries_total"),
    "torch_engine_reserved_bytes": _Reading("bytes", "engine_reserved_bytes"),
    "torch_engine_allocated_bytes": _Reading("bytes", "engine_allocated_bytes"),
    "gpu_trainer_bytes": _Slow("bytes", "trainer_bytes"),
    "gpu_probed_trainer_bytes": _Slow("bytes", "probed_bytes"),
    "gpu_engine_bytes": _Slow("bytes", "engine_bytes"),
    "gpu_other_bytes": _Slow("bytes", "other_bytes"),
    "host_driver_bytes": _Slow("bytes", "driver_bytes", of_gpu=False),
    "host_engine_bytes": _Slow("bytes", "engine_bytes", of_gpu=False),
    "host_worker_bytes": _Slow("bytes", "worker_bytes", of_gpu=False),
    "host_object_store_bytes": _Slow("bytes", "object_store_bytes", of_gpu=False),
    "host_other_bytes": _Slow("bytes", "other_bytes", of_gpu=False),
    "kv_cache_used_ratio": _Slow("ratio", "kv_used_ratio", of_gpu=False),
    "engine_requests_waiting": _Slow("count", "requests_waiting", of_gpu=False),
    "engine_preemptions_total": _Slow("count", "preemptions_total", of_gpu=False),
}


def series(
    connection: Connection, name: str, labels: Mapping[str, str], start: float, end: float, step: float
) -> Series:
    """One figure from `start` to `end` (Unix seconds), in buckets of `step` seconds.

    Raises ValueError for an unknown name, wrong labels or an impossible range, in a sentence for the person who asked.
    """
    kind = _kind(name)
    empty = [label for label, value in labels.items() if not value]
    if empty:
        raise ValueError(f'series "{name}": the label {empty[0]} is empty')
    wrong = kind.check(labels)
    if wrong:
        raise ValueError(f'series "{name}": {wrong}')
    buckets = _buckets(start, end, step, kind.shortest_step(connection, labels))
    found = kind.read(connection, labels, start, end, buckets.step_ms)
    return _series(name, labels, found, Buckets(start, end, _fitting(buckets.step_ms, found.width_ms)))


def of_gpus(
    connection: Connection, name: str, places: Sequence[Place], start: float, end: float, step: float
) -> list[Series]:
    """The same of several GPUs, in buckets of one width. Raises ValueError, also for a figure that is not of a GPU."""
    kind = _kind(name)
    if not isinstance(kind, _Reading) or not kind.of_gpu:
        raise ValueError(f'series "{name}" is not one that is read of each GPU')
    nodes_asked = dict.fromkeys(node for node, _ in places)
    pace = max((kind.shortest_step(connection, {"node": node}) for node in nodes_asked), default=0.0)
    buckets = _buckets(start, end, step, pace)
    found = kind.read_several(connection, places, start, end, buckets.step_ms)
    step_seconds = _fitting(buckets.step_ms, max((one.width_ms for one in found.values()), default=RAW_MS))
    return [
        _series(name, {"node": node, "gpu": gpu}, found[node, gpu], Buckets(start, end, step_seconds))
        for node, gpu in places
    ]


def _kind(name: str) -> _Kind:
    kind = SERIES.get(name)
    if kind is None:
        raise ValueError(f'there is no series "{name}"; there are {", ".join(SERIES)}')
    return kind


def _buckets(start: float, end: float, step: float, shortest_step: float) -> Buckets:
    Buckets(start, end, step)  # refuses a bad range before the pace of the readings corrects the step
    return Buckets(start, end, max(step, shortest_step))


def _fitting(step_ms: int, width_ms: int) -> float:
    """Seconds of a bucket that is some of these wide."""
    return (step_ms if width_ms == RAW_MS else ceil(step_ms / width_ms) * width_ms) / 1000


def _series(name: str, labels: Mapping[str, str], found: Found, buckets: Buckets) -> Series:
    for part in found.parts:
        if isinstance(part, Rolled):
            buckets.add_rolled(part)
        else:
            buckets.add(*part)
    points, of = buckets.points(with_gaps=SERIES[name].sampled), found.divisor
    return Series(
        name=name,
        unit=SERIES[name].unit,
        labels=dict(labels),
        step_seconds=buckets.step_seconds,
        times=tuple([at for at, _ in points]),
        min=tuple([None if point is None else point.low / of for _, point in points]),
        max=tuple([None if point is None else point.high / of for _, point in points]),
        mean=tuple([None if point is None else point.total / point.count / of for _, point in points]),
    )


def _hello(connection: Connection, node: str) -> wire.Hello | None:
    text = connection.scalar(select(nodes.c.hello).where(nodes.c.node == node))
    return None if text is None else _hello_decoder.decode(text)


def _usable_bytes(hello: wire.Hello | None, gpu: str) -> float:
    """What a program can get of a GPU. NaN, and so a gap, where the GPU's size is not known."""
    for facts in hello.facts.gpus if hello else ():
        if facts.gpu == gpu and facts.total_bytes > facts.reserved_bytes:
            return float(facts.total_bytes - facts.reserved_bytes)
    return float("nan")
