"""Readings read back as the samples that they were."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeAlias

from sqlalchemy import Connection, select

from oomwatch import wire
from oomwatch.core import allocator
from oomwatch.store import columns, stretches
from oomwatch.store.chunks import HOST
from oomwatch.store.columns import Columns, Reading
from oomwatch.store.schema import subjects

READINGS_AT_ONCE = 300_000  # as Python's own objects, some 100 MB of them
TOGETHER = "all"  # the address of an engine that stands for all of its node

_Told: TypeAlias = tuple[str, wire.Sample]
_Row: TypeAlias = tuple[int, str, Reading | wire.TorchSample | wire.EngineSample]


def recent_samples(connection: Connection, start: float, end: float) -> Iterator[_Told]:
    """(node, sample) from `start` to `end`, one node after the other, each in the order of time."""
    by_node: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in connection.execute(select(subjects).order_by(subjects.c.id)):
        by_node[row.node].append((row.id, row.gpu))
    for node, known in by_node.items():
        yield from _node_samples(node, _recent_columns(connection, known, start, end))


def in_order(connection: Connection, start: float, end: float, of_nodes: Collection[str]) -> Iterator[_Told]:
    """(node, sample) of these nodes from `start` to `end`, in the order of time; what engines said is one engine's.

    All columns of the time are in memory at once, 40 bytes a reading; samples only those of some minutes. Nothing is
    read from the database once the first sample is out.
    """
    by_node: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in connection.execute(select(subjects).order_by(subjects.c.id)):
        if row.node in of_nodes:
            by_node[row.node].append((row.id, row.gpu))
    read = {node: _recent_columns(connection, known, start, end) for node, known in by_node.items()}
    return _interwoven(read, round(start * 1000), round(end * 1000))


def _interwoven(read: "dict[str, list[tuple[str, Columns]]]", start_ms: int, end_ms: int) -> Iterator[_Told]:
    subjects_count = sum(len(of_node) for of_node in read.values())
    stride_ms = max(1000, 1000 * (READINGS_AT_ONCE // max(1, subjects_count)))
    for begin_ms in range(start_ms, end_ms + 1, stride_ms):
        until_ms = min(end_ms, begin_ms + stride_ms - 1)
        cut = {
            node: [(gpu, columns.between(part, begin_ms, until_ms)) for gpu, part in of_node]
            for node, of_node in read.items()
        }
        streams = [_node_samples(node, of_node, with_engines=True) for node, of_node in cut.items()]
        yield from heapq.merge(*streams, key=lambda told: told[1].at) if len(streams) > 1 else chain(*streams)


def _recent_columns(
    connection: Connection, known: list[tuple[int, str]], start: float, end: float
) -> list[tuple[str, Columns]]:
    start_ms, end_ms = round(start * 1000), round(end * 1000)
    label = dict(known)
    parts: dict[int, list[Columns]] = defaultdict(list)
    for subject, part in stretches.readings(connection, list(label), start_ms, end_ms):
        parts[subject].append(columns.between(part, start_ms, end_ms))
    return [(label[subject], columns.merged(found)) for subject, found in parts.items()]


def _node_samples(
    node: str, subjects_read: list[tuple[str, Columns]], *, with_engines: bool = False
) -> Iterator[_Told]:
    """Samples put together from the node's subjects: what was read at the same millisecond was one sample."""
    streams: list[Iterator[_Row]] = [_labelled(*one) for one in subjects_read]
    streams += [_probed(*one) for one in subjects_read]
    if with_engines:
        streams += [_of_engines(*one) for one in subjects_read]
    for at_ms, together in groupby(heapq.merge(*streams, key=itemgetter(0)), key=itemgetter(0)):
        readings = {(gpu, type(reading)): reading for _, gpu, reading in together}.values()
        yield (
            node,
            wire.Sample(
                seq=0,
                at=at_ms / 1000,
                gpus=tuple(reading for reading in readings if isinstance(reading, wire.GpuSample)),
                host=next((reading for reading in readings if isinstance(reading, wire.HostSample)), None),
                torch=tuple(reading for reading in readings if isinstance(reading, wire.TorchSample)),
                engines=tuple(reading for reading in readings if isinstance(reading, wire.EngineSample)),
            ),
        )


def _of_engines(gpu: str, part: Columns) -> Iterator[tuple[int, str, wire.EngineSample]]:
    """What the node's engines said, as if they were one."""
    beside = part.values[len(columns.HOST_FIELDS) :]
    if gpu != HOST or columns.is_empty(beside[:1]):  # kv_used_ratio
        return
    make = partial(wire.EngineSample, engine=TOGETHER, address=TOGETHER)
    for at_ms, reading in columns.to_readings(columns.ENGINE_FIELDS, Columns(part.at_ms, beside), make):
        if reading.kv_used_ratio is not None:
            yield at_ms, gpu, reading


def _probed(gpu: str, part: Columns) -> Iterator[tuple[int, str, wire.TorchSample]]:
    """What probes said of a GPU, its processes together."""
    beside = part.values[len(columns.GPU_FIELDS) :]
    if gpu == HOST or columns.is_empty(beside[:1]):  # reserved_bytes
        return
    make = partial(wire.TorchSample, pid=allocator.TOGETHER_PID, gpu=gpu)
    for at_ms, reading in columns.to_readings(columns.TORCH_FIELDS, Columns(part.at_ms, beside), make):
        if reading.reserved_bytes is not None:
            yield at_ms, gpu, reading


def _labelled(gpu: str, part: Columns) -> Iterator[tuple[int, str, Reading]]:
    if gpu == HOST:
        own, disk = len(columns.HOST_FIELDS), len(columns.HOST_FIELDS + columns.ENGINE_FIELDS)
        of_host = Columns(part.at_ms, part.values[:own] + part.values[disk:])
        for at_ms, host in columns.to_readings(columns.HOST_FIELDS + columns.DISK_FIELDS, of_host, wire.HostSample):
            yield at_ms, HOST, host
    else:
        for at_ms, reading in columns.to_readings(columns.GPU_FIELDS, part, partial(wire.GpuSample, gpu=gpu)):
            yield at_ms, gpu, reading
