"""PURE: readings of one GPU (or host) to a compressed blob, and back.

A blob is a head (version, number of columns, number of rows) and the columns one after another: first the milliseconds
since the row before, then each field of the readings. There are two ways to write them:

    LOOSE   quick, for the few rows that were just told: all numbers as float32, in four planes (all first bytes, all
            second bytes, ...), because they share their high bytes, compressed together
    TIGHT   small, for the many rows that are kept (packing.py); one column can be read without the others

A reading is kept as a whole number of a unit fine enough for its sensor, so that its low bits are zero rather than
noise: 0.97 is kept as 970 and comes back as 0.97 exactly. float32 counts whole numbers up to 2**24 exactly; memory is a
multiple of a page, which makes it exact up to 64 GiB for 4 KiB pages and 1 TiB for the 64 KiB ones of a GPU, and right
to 1 part in 16 million above. Missing is NaN in the blob and None outside.

A field added to a table at its end reads as missing in older blobs, so that it needs no migration; none may be removed
or moved. Columns that few readings have (torch's allocator where a probe is, the rollout engines of a host, whose
memory it is) stand behind those that all have, and are left out of a blob in which they would be empty. The next field
of any table goes behind them all.
"""

import struct
import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from operator import attrgetter, itemgetter, le, sub
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from oomwatch import wire
from oomwatch.store.packing import pack_columns, unpack_columns

LOOSE, TIGHT = 3, 2  # versions of a blob
LOOSE_BY_COLUMN = 1  # as LOOSE was before: each column in planes of its own. Read, and written no more
_HEAD = struct.Struct("<BBI")
# Three times what an agent may say within an hour; a damaged head asks for up to 2**32, which is 32 GiB.
ROWS_MAX = 2**20
_NAN = float("nan")
# A window of 4 KiB: what repeats in a column does so nearby, and zlib's default of 32 KiB costs ten times the CPU of a
# chunk of ten rows, nearly all of it in setting up (measured: 58 against 6 microseconds). In a plane it is the byte
# before that repeats: to look for nothing else takes a tenth less and finds 4 % more, of 600 rows a sixth and 2 %.
_WINDOW_BITS, _MEMORY_LEVEL, _LEVEL, _STRATEGY = 12, 4, 1, zlib.Z_RLE
_IS_LITTLE = sys.byteorder == "little"
_LONG_BYTES = 65_536  # room that is made before it is known how long a blob really is


class ColumnsError(ValueError):
    """A blob that this module did not write, or that was damaged since."""


class Field(NamedTuple):
    """How one field of a reading becomes a column."""

    name: str
    per_unit: int = 1  # the column holds value * per_unit, rounded to a multiple of `steps`
    steps: int = 1  # divides per_unit
    whole: bool = False  # int in wire, else float
    words: tuple[str, ...] = ()  # for a field of words: the column holds the position of the word


GPU_FIELDS = (
    Field("status", words=("ok", "no_data", "lost")),
    Field("used_bytes", whole=True),
    Field("utilization_ratio", 1000),  # NVML gives whole percents
    Field("power_watts", 8, steps=8),  # NVML's milliwatts are of a sensor good to 5 %: whole watts are kept of it
    Field("temperature_celsius", 8),
    Field("ecc_uncorrected_total", whole=True),
)
HOST_FIELDS = (
    Field("memory_used_bytes", whole=True),
    Field("cgroup_used_bytes", whole=True),
    Field("swap_used_bytes", whole=True),
    Field("shm_used_bytes", whole=True),
    Field("memory_pressure_some_ratio", 10_000),  # the kernel gives hundredths of a percent
    Field("memory_pressure_full_ratio", 10_000),
    Field("oom_kill_total", whole=True),
)
# Behind GPU_FIELDS: sums over the processes with a probe, as in core.allocator.
TORCH_FIELDS = (
    Field("reserved_bytes", whole=True),
    Field("allocated_bytes", whole=True),
    Field("alloc_retries_total", whole=True),
)
# Behind those: whose memory it is, told with each list of processes (store/beside.py).
HOLDER_FIELDS = (
    Field("trainer_bytes", whole=True),
    Field("probed_bytes", whole=True),
    Field("engine_bytes", whole=True),
    Field("other_bytes", whole=True),
    Field("engine_reserved_bytes", whole=True),
    Field("engine_allocated_bytes", whole=True),
)
# Behind HOST_FIELDS: over the node's rollout engines.
ENGINE_FIELDS = (
    Field("kv_used_ratio", 10_000),
    Field("requests_waiting", whole=True),
    Field("preemptions_total", whole=True),
)
# Behind those: of the host, where Ray runs.
DISK_FIELDS = (Field("disk_used_bytes", whole=True),)
# Behind those: resident memory by kind of process, told with each list of the largest ones.
RESIDENT_FIELDS = (
    Field("driver_bytes", whole=True),
    Field("engine_bytes", whole=True),
    Field("worker_bytes", whole=True),
    Field("object_store_bytes", whole=True),
    Field("other_bytes", whole=True),
)

Reading = wire.GpuSample | wire.HostSample
R = TypeVar("R", wire.GpuSample, wire.HostSample, wire.TorchSample, wire.EngineSample)


Typecode: TypeAlias = Literal["f", "d"]  # of the columns: of readings, and of what is worked out of them


class Columns(NamedTuple):
    """Rows in the order of their time: milliseconds since 1970, and one column of stored numbers a field."""

    at_ms: "array[int]"
    values: "tuple[array[float], ...]"


def from_readings(fields: Sequence[Field], rows: Sequence[tuple[int, Reading]]) -> Columns:
    """Columns of (milliseconds, reading) rows in any order."""
    at_ms, readings = zip(*sorted(rows, key=itemgetter(0)), strict=True)
    return Columns(array("q", at_ms), tuple(map(_stored, fields, _by_field(fields, readings))))


def widened(columns: Columns, fields: Sequence[Field], beside: Mapping[int, Any]) -> Columns:
    """The same rows with further columns. `beside` has, by milliseconds, what has the fields as attributes."""
    at_ms = columns.at_ms
    places = [place for place, moment in enumerate(at_ms) if moment in beside]
    if not places:
        return columns
    nothing = _absent(len(at_ms))
    further: list[array[float]] = []
    for field, told in zip(fields, _by_field(fields, [beside[at_ms[place]] for place in places]), strict=True):
        column = nothing
        if told.count(None) < len(told):
            column = nothing[:]
            for place, value in zip(places, _stored(field, told), strict=True):
                column[place] = value
        further.append(column)
    return Columns(at_ms, (*columns.values, *further))


def _by_field(fields: Sequence[Field], things: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """What each of the things has of each field, as an attribute."""
    return zip(*map(attrgetter(*(field.name for field in fields)), things), strict=True)


def to_readings(fields: Sequence[Field], columns: Columns, make: Callable[..., R]) -> Iterator[tuple[int, R]]:
    """(milliseconds, reading) rows. `make` takes the fields by name, and adds what the columns lack: a GPU's label.

    Columns behind those of `fields` are passed over.
    """
    names = [field.name for field in fields]
    by_field = [
        read_back(field, column) if column else [None] * len(columns.at_ms)
        for field, column in zip(fields, _padded(columns.values[: len(fields)], len(fields)), strict=True)
    ]
    for at_ms, *values in zip(columns.at_ms, *by_field, strict=True):
        yield at_ms, make(**dict(zip(names, values, strict=True)))


def is_empty(values: "Sequence[array[float]]") -> bool:
    """Whether these columns are not there, or hold nothing."""
    return all(value != value for column in values for value in column)  # noqa: PLR0124 - NaN is not itself


def field_index(fields: Sequence[Field], name: str) -> int:
    """The place of a field among the columns."""
    return [field.name for field in fields].index(name)


def pack(columns: Columns) -> bytes:
    """The loose blob of columns of at least one row. The time of the first row is not in it."""
    numbers: list[array[Any]] = [array("I", _steps(columns.at_ms)), *columns.values]
    raw = _planes(b"".join(numbers if _IS_LITTLE else map(_swapped, numbers)))
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, _STRATEGY)
    return _head(LOOSE, columns) + compressor.compress(raw) + compressor.flush()


def pack_tight(columns: Columns) -> bytes:
    """The tight blob of the same."""
    return _head(TIGHT, columns) + pack_columns([_steps(columns.at_ms), *columns.values])


def unpack(start_ms: int, blob: bytes, only: Sequence[int] | None = None, typecode: Typecode = "f") -> Columns:
    """The columns of a blob whose first row was at `start_ms`; with `only`, those at these places alone, in order.

    `typecode` is that of the columns that were packed. Raises ColumnsError.
    """
    try:
        version, width, rows = _HEAD.unpack_from(blob)
        if version not in _READERS:
            raise ColumnsError(f"a chunk of readings has version {version}, which this oomwatch does not know")
        if not 0 < rows <= ROWS_MAX:
            raise ColumnsError(f"a chunk of readings is damaged: it claims to have {rows} rows")
        places = [place for place in (range(width) if only is None else only) if place < width]
        steps, values = _READERS[version](blob[_HEAD.size :], width, rows, places, typecode)
        return Columns(array("q", accumulate(steps[1:], initial=start_ms)), values)
    except (struct.error, zlib.error, IndexError, ValueError, OverflowError, TypeError) as error:
        if isinstance(error, ColumnsError):
            raise
        raise ColumnsError(f"a chunk of readings is damaged: {error}") from error


def _head(version: int, columns: Columns) -> bytes:
    return _HEAD.pack(version, len(columns.values), len(columns.at_ms))


def _steps(at_ms: "array[int]") -> list[int]:
    """The milliseconds since the row before."""
    return [0, *map(sub, at_ms[1:], at_ms)]


_Read = tuple[Sequence[int], "tuple[array[float], ...]"]  # milliseconds since the row before, columns


def _read_loose(packed: bytes, width: int, rows: int, places: Sequence[int], _typecode: Typecode) -> _Read:
    woven = _woven(_decompressed(packed, rows, width))
    values = _array("f", woven[4 * rows :])
    return _array("I", woven[: 4 * rows]), tuple(values[rows * place : rows * (place + 1)] for place in places)


def _read_loose_by_column(packed: bytes, width: int, rows: int, places: Sequence[int], _typecode: Typecode) -> _Read:
    raw, size = _decompressed(packed, rows, width), 4 * rows
    steps, *values = (_woven(raw[size * place : size * (place + 1)]) for place in (0, *(1 + place for place in places)))
    return _array("I", steps), tuple(_array("f", column) for column in values)


def _decompressed(packed: bytes, rows: int, width: int) -> bytes:
    size = 4 * rows * (width + 1)
    raw = zlib.decompress(packed, bufsize=min(size, _LONG_BYTES))
    if len(raw) != size:
        raise ValueError(f"{len(raw)} bytes for {rows} rows")
    return raw


def _read_tight(packed: bytes, _width: int, rows: int, places: Sequence[int], typecode: Typecode) -> _Read:
    steps, *values = unpack_columns(packed, rows, [0, *(1 + place for place in places)])
    return steps, tuple(array(typecode, column) for column in values)


_READERS = {LOOSE: _read_loose, TIGHT: _read_tight, LOOSE_BY_COLUMN: _read_loose_by_column}


def merged(parts: Sequence[Columns], typecode: Typecode = "f") -> Columns:
    """All rows of several, in the order of their time; a column that a part lacks is missing there."""
    width = max(len(part.values) for part in parts)
    at_ms = array("q")
    values: tuple[array[float], ...] = tuple(array(typecode) for _ in range(width))
    for part in parts:
        at_ms.extend(part.at_ms)
        for whole, column in zip(values, _padded(part.values, width), strict=True):
            whole.extend(_absent(len(part.at_ms), typecode) if column is None else column)
    if all(map(le, at_ms, islice(at_ms, 1, None))):
        return Columns(at_ms, values)
    order = sorted(range(len(at_ms)), key=at_ms.__getitem__)
    return Columns(
        array("q", (at_ms[i] for i in order)), tuple(array(typecode, (column[i] for i in order)) for column in values)
    )


def between(columns: Columns, start_ms: int, end_ms: int) -> Columns:
    """The rows from `start_ms` to `end_ms`, both inclusive."""
    rows = slice(bisect_left(columns.at_ms, start_ms), bisect_right(columns.at_ms, end_ms))
    return Columns(columns.at_ms[rows], tuple(column[rows] for column in columns.values))


def _stored(field: Field, column: Sequence[Any]) -> "array[float]":
    if field.words:
        return array("f", [field.words.index(word) for word in column])
    missing = column.count(None)
    if missing == len(column):
        return _absent(missing)
    if field.whole and not missing:
        return array("f", column)
    steps, scale = field.steps, field.per_unit // field.steps
    return array("f", [_NAN if value is None else steps * round(value * scale) for value in column])


def read_back(field: Field, column: Sequence[float]) -> list[Any]:
    """What the stored numbers of a column stand for; None where one is missing."""
    if field.words:
        return [field.words[int(value)] for value in column]
    if field.whole:
        return [None if value != value else int(value) for value in column]  # noqa: PLR0124 - NaN is not itself
    scale = field.per_unit
    return [None if value != value else value / scale for value in column]  # noqa: PLR0124


def _padded(values: "tuple[array[float], ...]", width: int) -> "list[array[float] | None]":
    return [*values, *([None] * (width - len(values)))]


def _absent(rows: int, typecode: Typecode = "f") -> "array[float]":
    return array(typecode, [_NAN]) * rows


def _planes(raw: bytes) -> bytes:
    return raw[0::4] + raw[1::4] + raw[2::4] + raw[3::4]


def _woven(planes: bytes) -> bytes:
    """The four planes of some numbers together again."""
    count = len(planes) // 4
    woven = bytearray(len(planes))
    for plane in range(4):
        woven[plane::4] = planes[plane * count : (plane + 1) * count]
    return bytes(woven)


def _array(typecode: str, raw: bytes) -> "array[Any]":
    numbers: array[Any] = array(typecode, raw)
    return numbers if _IS_LITTLE else _swapped(numbers)


def _swapped(numbers: "array[Any]") -> "array[Any]":
    """The same numbers in the other order of bytes: those on disk are little-endian."""
    swapped = numbers[:]
    swapped.byteswap()
    return swapped
