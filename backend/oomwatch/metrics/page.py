"""The page that Prometheus reads: every room, as of now, in the format that was asked for."""

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from oomwatch.metrics import (
    agents,
    alerts,
    cluster,
    dcgm,
    engines,
    forecasts,
    gpus,
    hosts,
    own,
    runs,
    senders,
    signals,
    storage,
    torch,
)
from oomwatch.metrics.family import (
    ChannelCounts,
    ClusterCounts,
    Family,
    Room,
    SenderCounts,
    StorageSizes,
    View,
    Watchers,
)
from oomwatch.service.service import Service

ROOMS: tuple[Room, ...] = (
    gpus.ROOM,
    hosts.ROOM,
    signals.ROOM,
    forecasts.ROOM,
    torch.ROOM,
    engines.ROOM,
    runs.ROOM,
    alerts.ROOM,
    agents.ROOM,
    own.ROOM,
    senders.ROOM,
    storage.ROOM,
    cluster.ROOM,
)
COMPATIBLE: Mapping[str, Room] = {"dcgm": dcgm.ROOM}  # with the names of others, where the settings ask for them
GZIP_LEVEL = 1  # a seventh of the page's size; more costs more than it spares on the way to a Prometheus nearby


def families(rooms: Iterable[Room] = ROOMS) -> tuple[Family, ...]:
    """Everything that there can be on the page, but what the client library says of the process."""
    return tuple(family for room in rooms for family in room.families)


def rooms_with(compat: Iterable[str]) -> tuple[Room, ...]:
    """All rooms, and those of the exporters that the server is to be compatible with."""
    return (*ROOMS, *(COMPATIBLE[name] for name in dict.fromkeys(compat)))


class Page(NamedTuple):
    content: bytes
    headers: dict[str, str]


class Metrics:
    """Reads the service. `read` belongs into the service's own thread; what it gives, and `encode`, may be in any."""

    def __init__(
        self,
        service: Service,
        channels: Callable[[], Iterable[ChannelCounts]],
        watchers: Watchers,
        rooms: Sequence[Room] = ROOMS,
        *,
        heartbeat_at: Callable[[], float | None] = lambda: None,
        problems: Callable[[], Sequence[str]] = tuple,
        storage: Callable[[], StorageSizes | None] = lambda: None,
    ) -> None:
        self._service = service
        self._channels = channels
        self._watchers = watchers
        self._rooms = rooms
        self._heartbeat_at = heartbeat_at
        self.senders: list[SenderCounts] = []  # each is added by who makes it
        self._problems = problems
        self._storage = storage
        self.cluster: Callable[[], ClusterCounts] | None = None  # where this server is one of several
        self._process = ProcessCollector(registry=None)

    def collect(self) -> list[Metric]:
        """Every family, as of now."""
        return self.read()()

    def read(self) -> Callable[[], list[Metric]]:
        """The same in two steps, of which the first alone needs the service."""
        fleet = self._service.engine.fleet
        view = View(
            service=self._service,
            channels=list(self._channels()),
            watchers=self._watchers,
            senders=self.senders,
            now=self._service.clock(),
            nodes=list(fleet.nodes.values()),
            runs=list(fleet.runs.values()),
            heartbeat_at=self._heartbeat_at(),
            problems=self._problems(),
            storage=self._storage(),
            cluster=self.cluster() if self.cluster is not None else None,
        )
        told = [reading for room in self._rooms for reading in room.read(view)]
        return lambda: [*(reading() for reading in told), *self._process.collect()]


def encode(told: Sequence[Metric], accept: str = "", accept_encoding: str = "") -> Page:
    """The page in the format that `Accept` asks for (OpenMetrics, or Prometheus' text), packed where that is taken."""
    encoder, content_type = choose_encoder(accept)
    registry = CollectorRegistry()
    registry.register(_Told(told))
    content, headers = encoder(registry), {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
    if gzip_accepted(accept_encoding):
        content, headers["Content-Encoding"] = gzip.compress(content, GZIP_LEVEL), "gzip"
    return Page(content, headers)


class _Told(Collector):
    def __init__(self, told: Sequence[Metric]) -> None:
        self._told = told

    def describe(self) -> Iterable[Metric]:
        """Names are checked by the tests, not at every scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        return iter(self._told)
