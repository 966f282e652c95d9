"""Readings in the database, as they are told: small chunks of one GPU (or host), none across an hour."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from sqlalchemy import Column, Connection, Table, and_, insert, select, update
from sqlalchemy.exc import IntegrityError

from oomwatch import wire
from oomwatch.store import columns, folding
from oomwatch.store.beside import NOTHING_OF_HOST, beside_gpus, beside_host
from oomwatch.store.columns import Columns, Field, Reading
from oomwatch.store.peaks import seen_before
from oomwatch.store.rows import add, pieces, put
from oomwatch.store.schema import chunks, loose_hours, loose_pieces, runs, subjects
from oomwatch.store.tiers import HOUR_MS

HOST = ""  # the subject of a node that is no GPU
# What is told within so long becomes one chunk while its hour still runs, so that a chart of today reads few.
PIECE_MS = 600_000

_Place: TypeAlias = tuple[str, str, int]  # node, gpu and hour
SubjectIds: TypeAlias = dict[tuple[str, str], int]  # by node and gpu; they never change


class Chunk(NamedTuple):
    """A row of the table. `folded`: its readings are part of the tiers."""

    subject: int
    start_ms: int
    end_ms: int
    blob: bytes
    folded: bool = False


def loose(subject: int, content: Columns) -> Chunk:
    """Readings that were just told."""
    return Chunk(subject, content.at_ms[0], content.at_ms[-1], columns.pack(content))


def tight(subject: int, content: Columns) -> Chunk:
    """Readings of an hour that is over."""
    return Chunk(subject, content.at_ms[0], content.at_ms[-1], columns.pack_tight(content), folded=True)


def write(connection: Connection, samples: Iterable[tuple[str, wire.Sample]], known: SubjectIds) -> None:
    """Store the readings of (node, sample) pairs, one chunk a subject and hour. What is looked up becomes `known`."""
    readings: dict[_Place, list[tuple[int, Reading]]] = defaultdict(list)
    beside: dict[_Place, dict[int, object]] = defaultdict(dict)  # what else was told at the same moment
    for node, sample in samples:
        at_ms = round(sample.at * 1000)
        hour_ms = at_ms - at_ms % HOUR_MS
        for gpu in sample.gpus:
            readings[node, gpu.gpu, hour_ms].append((at_ms, gpu))
        if sample.host is not None:
            readings[node, HOST, hour_ms].append((at_ms, sample.host))
        for gpu_label, at, reading in seen_before(sample):
            moment_ms = round(at * 1000)
            place = (node, HOST if gpu_label is None else gpu_label, moment_ms - moment_ms % HOUR_MS)
            readings[place].append((moment_ms, reading))
        for label, row in beside_gpus(sample).items():
            beside[node, label, hour_ms][at_ms] = row
        told = beside_host(sample.engines, sample.host)
        if told != NOTHING_OF_HOST:
            beside[node, HOST, hour_ms][at_ms] = told
    if readings:
        ids = _subject_ids(connection, dict.fromkeys((node, gpu) for node, gpu, _ in readings), known)
        new = [_chunk(ids[place[:2]], place[1], rows, beside.get(place)) for place, rows in readings.items()]
        _insert(connection, new)
        open_hours(connection, {hour_ms for _, _, hour_ms in readings})
        _open_pieces(connection, {at_ms - at_ms % PIECE_MS for rows in readings.values() for at_ms, _ in rows})


def fields_of(gpu: str) -> tuple[Field, ...]:
    """The columns of a GPU, or of the host."""
    return columns.HOST_FIELDS if gpu == HOST else columns.GPU_FIELDS


def all_fields_of(gpu: str) -> tuple[Field, ...]:
    """The columns that a GPU, or the host, may have."""
    return fields_of(gpu) + _fields_beside(gpu)


def gpus(connection: Connection, node: str | None, run: str | None) -> list[tuple[str, str]]:
    """(node, label) of the GPUs of which something was told, in the order in which they came."""
    query = select(subjects.c.node, subjects.c.gpu).where(subjects.c.gpu != HOST).order_by(subjects.c.id)
    if node is not None:
        query = query.where(subjects.c.node == node)
    if run is not None:
        query = query.where(subjects.c.node.in_(select(runs.c.node).where(runs.c.run == run)))
    return [(row.node, row.gpu) for row in connection.execute(query)]


def _fields_beside(gpu: str) -> tuple[Field, ...]:
    if gpu == HOST:
        return columns.ENGINE_FIELDS + columns.DISK_FIELDS + columns.RESIDENT_FIELDS
    return columns.TORCH_FIELDS + columns.HOLDER_FIELDS


def _chunk(subject: int, gpu: str, rows: Sequence[tuple[int, Reading]], beside: Mapping[int, object] | None) -> Chunk:
    packed = columns.from_readings(fields_of(gpu), rows)
    if beside:
        packed = columns.widened(packed, _fields_beside(gpu), beside)
    return loose(subject, packed)


def _insert(connection: Connection, new: list[Chunk]) -> None:
    """Insert; where a subject has a chunk that begins at the same millisecond, merge with that one."""
    try:
        with connection.begin_nested():
            connection.execute(insert(chunks), [chunk._asdict() for chunk in new])
    except IntegrityError:
        for chunk in new:
            _insert_or_merge(connection, chunk)


def _insert_or_merge(connection: Connection, new: Chunk) -> None:
    same = and_(chunks.c.subject == new.subject, chunks.c.start_ms == new.start_ms)
    old = connection.execute(select(chunks.c.blob, chunks.c.folded).where(same).with_for_update()).first()
    if old is None:
        connection.execute(insert(chunks), new._asdict())
        return
    told = columns.unpack(new.start_ms, new.blob)
    both = columns.merged([columns.unpack(new.start_ms, old.blob), told])
    if old.folded:
        folding.add(connection, new.subject, told)
    packed = tight(new.subject, both) if old.folded else loose(new.subject, both)
    connection.execute(update(chunks).where(same).values(packed._asdict()))


def _subject_ids(connection: Connection, wanted: Collection[tuple[str, str]], known: SubjectIds) -> SubjectIds:
    missing = [place for place in wanted if place not in known]
    if not missing:
        return known
    known |= _known_subjects(connection, missing)
    new = [{"node": node, "gpu": gpu} for node, gpu in missing if (node, gpu) not in known]
    if not new:
        return known
    add(connection, subjects, new)
    return known | _known_subjects(connection, missing)  # not known before this transaction has come to its end


def _known_subjects(connection: Connection, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for nodes in pieces(dict.fromkeys(node for node, _ in wanted)):
        for row in connection.execute(select(subjects).where(subjects.c.node.in_(nodes))):
            found[row.node, row.gpu] = row.id
    return found


def open_hours(connection: Connection, hours: set[int]) -> None:
    """They hold readings that are yet to be merged and folded."""
    _open(connection, loose_hours, loose_hours.c.hour_ms, hours)


def _open_pieces(connection: Connection, begun: set[int]) -> None:
    _open(connection, loose_pieces, loose_pieces.c.piece_ms, begun)


def _open(connection: Connection, table: Table, key: "Column[int]", begun: set[int]) -> None:
    """Those that are open already are left alone: every server would wait for the others at the row of now."""
    untouched = select(key).where(key.in_(begun), table.c.next_subject == 0)
    rows = [{key.name: start_ms, "next_subject": 0} for start_ms in begun.difference(connection.scalars(untouched))]
    put(connection, table, rows)
