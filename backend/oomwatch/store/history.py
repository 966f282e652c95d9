"""Named figures over time: what the API's charts are drawn from. SERIES lists them, one line each."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan
from typing import Protocol

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from oomwatch import wire
from oomwatch.store import chunks, columns, events
from oomwatch.store.buckets import Buckets
from oomwatch.store.schema import nodes

Part = tuple[Sequence[int], Sequence[float]]  # milliseconds and values of equal length, in the order of time
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

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float) -> Iterator[Part]:
        """The figure from `start` to `end`, in any number of parts."""


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

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float) -> Iterator[Part]:
        gpu = labels["gpu"] if self.of_gpu else chunks.HOST
        fields = chunks.all_fields_of(gpu)
        divisor = float(fields[columns.field_index(fields, self.field)].per_unit)
        if self.share:
            divisor *= _usable_bytes(_hello(connection, labels["node"]), gpu)
        for at_ms, values in chunks.read_column(connection, labels["node"], gpu, self.field, start, end):
            yield at_ms, values if divisor == 1 else [value / divisor for value in values]


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

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float) -> Iterator[Part]:
        return self.figures(connection, self.field, labels, start, end)


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

    def read(self, connection: Connection, labels: Mapping[str, str], start: float, end: float) -> Iterator[Part]:
        probed: list[int] = []
        if set(labels) == {"node", "gpu"}:
            of_gpu = _Reading(self.unit, self.field)
            for at_ms, values in of_gpu.read(connection, labels, start - FRESH_MS / 1000, end + FRESH_MS / 1000):
                probed += [moment for moment, value in zip(at_ms, values, strict=True) if not isnan(value)]
                yield at_ms, values
        probed.sort()
        for at_ms, values in self._logged.read(connection, labels, start, end):
            kept = [index for index, moment in enumerate(at_ms) if not _is_near(moment, probed)]
            yield [at_ms[index] for index in kept], [values[index] for index in kept]


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
    kind = SERIES.get(name)
    if kind is None:
        raise ValueError(f'there is no series "{name}"; there are {", ".join(SERIES)}')
    empty = [label for label, value in labels.items() if not value]
    if empty:
        raise ValueError(f'series "{name}": the label {empty[0]} is empty')
    wrong = kind.check(labels)
    if wrong:
        raise ValueError(f'series "{name}": {wrong}')
    Buckets(start, end, step)  # refuses a bad range before the pace of the readings corrects the step
    buckets = Buckets(start, end, max(step, kind.shortest_step(connection, labels)))
    for at_ms, values in kind.read(connection, labels, start, end):
        buckets.add(at_ms, values)
    points = buckets.points(with_gaps=kind.sampled)
    return Series(
        name=name,
        unit=kind.unit,
        labels=dict(labels),
        step_seconds=buckets.step_seconds,
        times=tuple(at for at, _ in points),
        min=tuple(None if point is None else point.low for _, point in points),
        max=tuple(None if point is None else point.high for _, point in points),
        mean=tuple(None if point is None else point.total / point.count for _, point in points),
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
