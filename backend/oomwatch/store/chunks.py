"""Readings in the database: written as small chunks, merged hour by hour, read back as columns or as samples."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from oomwatch import wire
from oomwatch.core import allocator
from oomwatch.store import columns
from oomwatch.store.beside import NOTHING_OF_GPU, NOTHING_OF_HOST, beside_gpus, beside_host
from oomwatch.store.columns import Columns, Field, Reading
from oomwatch.store.rows import pieces, put
from oomwatch.store.schema import chunks, loose_hours, subjects

HOST = ""  # the subject of a node that is no GPU
HOUR_SECONDS = 3600.0
HOUR_MS = 3_600_000
# An hour is merged once no late message is to be expected: an agent keeps unsent messages for 10 minutes. One that
# comes all the same opens the hour again.
GRACE_MS = 900_000

READINGS_AT_ONCE = 300_000  # as Python's own objects, some 100 MB of them
TOGETHER = "all"  # the address of an engine that stands for all of its node

_Told: TypeAlias = tuple[str, wire.Sample]
_Row: TypeAlias = tuple[int, str, Reading | wire.TorchSample | wire.EngineSample]
_Place: TypeAlias = tuple[str, str, int]  # node, gpu and hour


class _Chunk(NamedTuple):
    subject: int
    start_ms: int
    end_ms: int
    blob: bytes


def _packed(subject: int, content: Columns) -> _Chunk:
    return _Chunk(subject, content.at_ms[0], content.at_ms[-1], columns.pack(content))


def write(connection: Connection, samples: Iterable[tuple[str, wire.Sample]]) -> None:
    """Store the readings of (node, sample) pairs, one chunk a subject and hour."""
    readings: dict[_Place, list[tuple[int, Reading]]] = defaultdict(list)
    beside: dict[_Place, dict[int, object]] = defaultdict(dict)  # what else was told at the same moment
    for node, sample in samples:
        at_ms = round(sample.at * 1000)
        hour_ms = at_ms - at_ms % HOUR_MS
        for gpu in sample.gpus:
            readings[node, gpu.gpu, hour_ms].append((at_ms, gpu))
        if sample.host is not None:
            readings[node, HOST, hour_ms].append((at_ms, sample.host))
        for label, row in beside_gpus(sample).items():
            beside[node, label, hour_ms][at_ms] = row
        told = beside_host(sample.engines, sample.host)
        if told != NOTHING_OF_HOST:
            beside[node, HOST, hour_ms][at_ms] = told
    if readings:
        ids = _subject_ids(connection, dict.fromkeys((node, gpu) for node, gpu, _ in readings))
        new = [_chunk(ids[place[:2]], place[1], rows, beside.get(place)) for place, rows in readings.items()]
        _insert(connection, new)
        _open_hours(connection, {hour_ms for _, _, hour_ms in readings})


def compact(connection: Connection, now: float, at_most_subjects: int) -> bool:
    """Merge the chunks of some subjects in the oldest hour that is over. True: there is more to do."""
    latest = round(now * 1000) - HOUR_MS - GRACE_MS
    oldest = select(loose_hours).where(loose_hours.c.hour_ms <= latest).order_by(loose_hours.c.hour_ms).limit(1)
    hour = connection.execute(oldest).first()
    if hour is None:
        return False
    todo = select(subjects.c.id).where(subjects.c.id >= hour.next_subject).order_by(subjects.c.id)
    ids = connection.scalars(todo.limit(at_most_subjects)).all()
    for subject in ids:
        _merge_hour(connection, subject, hour.hour_ms)
    this_hour = loose_hours.c.hour_ms == hour.hour_ms
    if len(ids) < at_most_subjects:
        connection.execute(delete(loose_hours).where(this_hour))
    else:
        connection.execute(update(loose_hours).where(this_hour).values(next_subject=ids[-1] + 1))
    return True


def prune(connection: Connection, cutoff: float, horizon: float, at_most_rows: int) -> int:
    """Delete chunks of hours that ended before `cutoff` or begin after `horizon`, at most so many; returns how many."""
    before_ms = round(cutoff * 1000) // HOUR_MS * HOUR_MS
    after_ms = round(horizon * 1000) // HOUR_MS * HOUR_MS + HOUR_MS
    outside = (chunks.c.start_ms < before_ms, chunks.c.start_ms >= after_ms)
    hours = loose_hours.c.hour_ms
    connection.execute(delete(loose_hours).where(or_(hours < before_ms, hours >= after_ms)))
    return sum(_delete_some(connection, condition, at_most_rows) for condition in outside)


def _delete_some(connection: Connection, which: ColumnElement[bool], at_most_rows: int) -> int:
    """Delete chunks, of each subject its earliest first; returns how many."""
    wanted = and_(chunks.c.subject == subjects.c.id, which)
    query = select(chunks.c.subject, chunks.c.start_ms).join(subjects, wanted).limit(at_most_rows)
    found = connection.execute(query).all()
    last: dict[int, int] = {}
    for subject, start_ms in found:
        last[subject] = max(start_ms, last.get(subject, start_ms))
    for subject, start_ms in last.items():
        connection.execute(delete(chunks).where(chunks.c.subject == subject, which, chunks.c.start_ms <= start_ms))
    return len(found)


def read_column(
    connection: Connection, node: str, gpu: str, field: str, start: float, end: float
) -> Iterator[tuple[Sequence[int], Sequence[float]]]:
    """(milliseconds, stored numbers) of one field, chunk by chunk, covering at least `start` to `end`."""
    index = columns.field_index(all_fields_of(gpu), field)
    subject = select(subjects.c.id).where(subjects.c.node == node, subjects.c.gpu == gpu).scalar_subquery()
    for chunk in _between(connection, chunks.c.subject == subject, start, end):
        part = columns.unpack(chunk.start_ms, chunk.blob, only=index)
        if part.values:
            yield part.at_ms, part.values[0]


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


def fields_of(gpu: str) -> tuple[Field, ...]:
    """The columns of a GPU, or of the host."""
    return columns.HOST_FIELDS if gpu == HOST else columns.GPU_FIELDS


def all_fields_of(gpu: str) -> tuple[Field, ...]:
    """The columns that a GPU, or the host, may have."""
    return fields_of(gpu) + _fields_beside(gpu)


def _fields_beside(gpu: str) -> tuple[Field, ...]:
    if gpu == HOST:
        return columns.ENGINE_FIELDS + columns.DISK_FIELDS + columns.RESIDENT_FIELDS
    return columns.TORCH_FIELDS + columns.HOLDER_FIELDS


def _chunk(subject: int, gpu: str, rows: Sequence[tuple[int, Reading]], beside: Mapping[int, object] | None) -> _Chunk:
    packed = columns.from_readings(fields_of(gpu), rows)
    if beside:
        nothing = NOTHING_OF_HOST if gpu == HOST else NOTHING_OF_GPU
        packed = columns.widened(packed, _fields_beside(gpu), [beside.get(at_ms, nothing) for at_ms in packed.at_ms])
    return _packed(subject, packed)


def _insert(connection: Connection, new: list[_Chunk]) -> None:
    """Insert; where a subject has a chunk that begins at the same millisecond, merge with that one."""
    try:
        with connection.begin_nested():
            connection.execute(insert(chunks), [chunk._asdict() for chunk in new])
    except IntegrityError:
        for chunk in new:
            _insert_or_merge(connection, chunk)


def _insert_or_merge(connection: Connection, new: _Chunk) -> None:
    same = and_(chunks.c.subject == new.subject, chunks.c.start_ms == new.start_ms)
    old = connection.scalar(select(chunks.c.blob).where(same))
    if old is None:
        connection.execute(insert(chunks), new._asdict())
        return
    both = columns.merged([columns.unpack(new.start_ms, old), columns.unpack(new.start_ms, new.blob)])
    connection.execute(update(chunks).where(same).values(_packed(new.subject, both)._asdict()))


def _subject_ids(connection: Connection, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    wanted = list(wanted)
    known = _known_subjects(connection, wanted)
    new = [{"node": node, "gpu": gpu} for node, gpu in wanted if (node, gpu) not in known]
    if not new:
        return known
    connection.execute(insert(subjects), new)
    return _known_subjects(connection, wanted)


def _known_subjects(connection: Connection, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for nodes in pieces(dict.fromkeys(node for node, _ in wanted)):
        for row in connection.execute(select(subjects).where(subjects.c.node.in_(nodes))):
            found[row.node, row.gpu] = row.id
    return found


def _open_hours(connection: Connection, hours: set[int]) -> None:
    known = connection.execute(select(loose_hours.c.hour_ms).where(loose_hours.c.hour_ms.in_(hours)))
    rows = [{"hour_ms": hour_ms, "next_subject": 0} for hour_ms in sorted(hours)]
    put(connection, loose_hours, rows, (tuple(row) for row in known))


def _merge_hour(connection: Connection, subject: int, hour_ms: int) -> None:
    this_hour = and_(chunks.c.subject == subject, chunks.c.start_ms.between(hour_ms, hour_ms + HOUR_MS - 1))
    found = connection.execute(select(chunks.c.start_ms, chunks.c.blob).where(this_hour)).all()
    if len(found) < 2:  # noqa: PLR2004 - one chunk is as merged as can be
        return
    whole = columns.merged([columns.unpack(start_ms, blob) for start_ms, blob in found])
    connection.execute(delete(chunks).where(this_hour))
    connection.execute(insert(chunks), _packed(subject, whole)._asdict())


def _between(connection: Connection, which: ColumnElement[bool], start: float, end: float) -> Iterator[_Chunk]:
    start_ms, end_ms = round(start * 1000), round(end * 1000)
    first_hour_ms = start_ms // HOUR_MS * HOUR_MS
    in_time = and_(chunks.c.start_ms.between(first_hour_ms, end_ms), chunks.c.end_ms >= start_ms)
    query = select(chunks).where(which, in_time)
    for row in connection.execute(query.order_by(chunks.c.subject, chunks.c.start_ms)):
        yield _Chunk(*row)


def _recent_columns(
    connection: Connection, known: list[tuple[int, str]], start: float, end: float
) -> list[tuple[str, Columns]]:
    start_ms, end_ms = round(start * 1000), round(end * 1000)
    label = dict(known)
    parts: dict[int, list[Columns]] = defaultdict(list)
    for ids in pieces(label):
        for chunk in _between(connection, chunks.c.subject.in_(ids), start, end):
            parts[chunk.subject].append(columns.between(columns.unpack(chunk.start_ms, chunk.blob), start_ms, end_ms))
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
