"""A family of series: its name, its labels, and how many series of it there can be."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from oomwatch import wire
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.service.measured import BOUNDS_SECONDS, Histogram
from oomwatch.service.service import Service

OF_NODE, OF_GPU, OF_RUN = ("node",), ("node", "gpu"), ("run",)

# What `per` counts, in the fleet of 1,024 GPUs that the reference page reckons with.
LARGE_FLEET: Mapping[str, int] = {
    "gpu": 1024,
    "node": 128,
    "run": 8,
    "gpu or run": 1024 + 8,
    "engine": 256,
    "rule": 40,
    "channel": 5,
    "forecast": 1024 + 4 * 128,  # of each card; of a host's machine, container, spill disk and /dev/shm
    "role": len(wire.ROLES) + 1,  # and of no role
    "phase": len(wire.PHASES),
    "severity told": 2,  # the rule's own, and info while it is steady
    "state": 2,
    "mute kind": len(get_args(wire.MuteKind)),
    "outcome": 4,
    "queue": 3,
    "sender": 2,  # remote write, OTLP
    "export outcome": 3,
    "fineness": 3,  # of history: raw, 10s, 1m
    "cluster outcome": 5,
    "alert listed": 4096,
    "bucket": len(BOUNDS_SECONDS),
}

Kind: TypeAlias = Literal["gauge", "counter", "info", "histogram"]
# What was read of a family: to be made into what the client library takes, which is dear, in any thread.
Reading: TypeAlias = Callable[[], Metric]
Rows: TypeAlias = Iterable[tuple[Sequence[str], float | None]]


class Family(NamedTuple):
    """`name` is without the suffix that Prometheus knows it by (`_total`, `_info`, `_bucket`).

    `per`: there is at most one series for each combination of these; of a histogram, so many times its buckets.
    """

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    per: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        """The name as a query has it."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")

    def bound(self, numbers: Mapping[str, int]) -> int:
        """How many series there can be, where there are so many of each thing that `per` names."""
        of_each = numbers["bucket"] + 3 if self.kind == "histogram" else 1  # the last bucket, the sum and the count
        return of_each * prod(numbers[thing] for thing in self.per)

    def of(self, rows: Rows) -> Reading:
        """The family with these values; what is None is left out."""
        known = [(labels, value) for labels, value in rows if value is not None]

        def make() -> Metric:
            made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
            family = made(self.name, self.about, labels=self.labels)
            for labels, value in known:
                family.add_metric(labels, value)
            return family

        return make

    def one(self, value: float | None) -> Reading:
        """A family without labels."""
        return self.of([((), value)])

    def info(self, told: Iterable[dict[str, str]]) -> Reading:
        """Each with the value 1; what it is stands in the labels."""
        known = list(told)

        def make() -> Metric:
            family = InfoMetricFamily(self.name, self.about)
            for labels in known:
                family.add_metric((), labels)
            return family

        return make

    def measured(self, histogram: Histogram) -> Reading:
        buckets, total = histogram.buckets(), histogram.sum

        def make() -> Metric:
            family = HistogramMetricFamily(self.name, self.about)
            family.add_metric((), buckets, total)
            return family

        return make


class ChannelCounts(Protocol):
    """What is told of a notification channel."""

    @property
    def name(self) -> str: ...
    @property
    def waiting(self) -> int: ...
    @property
    def delivered_total(self) -> int: ...
    @property
    def failed_total(self) -> int: ...
    @property
    def retries_total(self) -> int: ...
    @property
    def dropped_total(self) -> int: ...


class Watchers(Protocol):
    """The browsers that watch."""

    def __len__(self) -> int: ...
    def longest_queue(self) -> int: ...


class SenderCounts(Protocol):
    """What is told of a sender of these metrics to another store. Totals are of samples."""

    name: str
    sent_total: int
    refused_total: int
    dropped_total: int
    problem: str | None

    @property
    def waiting(self) -> int: ...


class HistorySize(Protocol):
    """History of one fineness."""

    @property
    def kept(self) -> str: ...
    @property
    def chunks(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class StorageSizes(Protocol):
    """What was last measured of the database; None: not measured."""

    @property
    def database_bytes(self) -> int | None: ...
    @property
    def growth_bytes_per_day(self) -> float | None: ...
    @property
    def history(self) -> Sequence[HistorySize]: ...


class ClusterCounts(NamedTuple):
    """What is told of a server that is one of several."""

    alive: Sequence[str]
    leads: bool
    is_connected: bool  # to NATS
    envelopes: Mapping[str, int]  # by what became of them
    waiting: int
    lag: Histogram
    words_total: int
    spoken_for: int
    unspoken: int


class View(NamedTuple):
    """What the rooms read, at one moment."""

    service: Service
    channels: Sequence[ChannelCounts]
    watchers: Watchers
    senders: Sequence[SenderCounts]
    now: float
    nodes: Sequence[NodeRecord]
    runs: Sequence[RunRecord]
    problems: Sequence[str]  # why an alert might not be told
    heartbeat_at: float | None  # when the dead man's switch was last reached
    storage: StorageSizes | None = None
    cluster: ClusterCounts | None = None  # None: this server is alone


class Room(NamedTuple):
    """Families that belong together, and how they are read."""

    families: tuple[Family, ...]
    read: Callable[[View], Iterator[Reading]]
