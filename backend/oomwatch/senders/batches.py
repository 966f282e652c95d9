"""The families of one moment as bodies of remote write, and the queue in which they wait."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from prometheus_client.core import Metric

from oomwatch.senders.write_request import STALE, labels_part, sample_part, write_request

SAMPLES_MAX = 2000  # in a request: what Prometheus' own senders put into one
# Of batches: at 20,000 series every 15 s, a quarter of an hour, and some 20 MiB.
BATCHES_MAX = 600
Key: TypeAlias = tuple[str, tuple[str, ...]]
Pack: TypeAlias = Callable[[bytes], bytes]


class Batch(NamedTuple):
    body: bytes
    samples: int


class Packer:
    """Remembers the series of the last time: their labels are written once, and one that is gone is said to have ended.

    `labels` are added to each: what Prometheus adds to what it scrapes.
    """

    def __init__(self, labels: Mapping[str, str], compress: Pack) -> None:
        self._labels = labels
        self._compress = compress
        self._known: dict[Key, bytes] = {}

    def pack(self, told: Sequence[Metric], at_ms: int) -> list[Batch]:
        """Everything as of one moment. Not from two threads at once."""
        known: dict[Key, bytes] = {}
        series: list[tuple[bytes, bytes]] = []
        for metric in told:
            for one in metric.samples:
                key = (one.name, tuple(one.labels.values()))
                labels = self._known.get(key) or labels_part(one.name, {**one.labels, **self._labels})
                known[key] = labels
                series.append((labels, sample_part(float(one.value), at_ms)))
        ended = sample_part(STALE, at_ms)
        series += [(labels, ended) for key, labels in self._known.items() if key not in known]
        self._known = known
        rest = iter(series)
        pieces = iter(lambda: list(islice(rest, SAMPLES_MAX)), [])
        return [Batch(self._compress(write_request(piece)), len(piece)) for piece in pieces]


class Queue:
    """Oldest first. Where there is no room the oldest go: what is new matters more."""

    def __init__(self, batches_max: int = BATCHES_MAX) -> None:
        self._batches: deque[Batch] = deque()
        self._batches_max = batches_max
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._batches)

    def put(self, batches: Sequence[Batch]) -> int:
        """The number of samples that had to go."""
        self._batches.extend(batches)
        gone = [self._batches.popleft() for _ in range(len(self._batches) - self._batches_max)]
        self._news.set()
        return sum(batch.samples for batch in gone)

    async def next(self) -> Batch:
        while not self._batches:
            self._news.clear()
            await self._news.wait()
        return self._batches.popleft()
