"""A plain table of device memory, one row a reading: series,t_seconds,used_bytes. Each series is one card."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from oomwatch import wire
from oomwatch.backtest.files import lines_of
from oomwatch.backtest.recording import BEGINNING, Recording, gpu_facts
from oomwatch.backtest.source import InputError

COLUMNS = ("series", "t_seconds", "used_bytes")
GPU = "0"


class _Table(Protocol):
    """What csv.reader gives; its own type has no public name."""

    line_num: int

    def __iter__(self) -> "_Table": ...
    def __next__(self) -> list[str]: ...


class Row(NamedTuple):
    at: float  # seconds, from any moment
    used_bytes: int


def read_series(path: Path) -> dict[str, list[Row]]:
    """The rows of each series, in the order of the file. Raises InputError."""
    table = csv.reader(lines_of(path))
    try:
        return _series(table, path)
    except csv.Error as error:
        raise InputError(f"{path}:{table.line_num}: no row of a table: {error}") from error


def header_of(line: str) -> list[str]:
    """The names in a table's first line."""
    try:
        return [name.strip() for name in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _series(table: "_Table", path: Path) -> dict[str, list[Row]]:
    header = [name.strip() for name in next(table, [])]
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise InputError(f"{path}:1: the columns {', '.join(COLUMNS)} are expected; {', '.join(missing)} is missing")
    places = [header.index(name) for name in COLUMNS]
    series: dict[str, list[Row]] = {}
    for cells in table:
        if any(cell.strip() for cell in cells):
            name, row = _row(cells, places, f"{path}:{table.line_num}")
            rows = series.setdefault(name, [])
            if rows and row.at < rows[-1].at:
                raise InputError(f"{path}:{table.line_num}: t_seconds goes back, from {rows[-1].at:g} to {row.at:g}")
            rows.append(row)
    if not series:
        raise InputError(f"{path}: a header, and no row below it")
    return series


def _row(cells: Sequence[str], places: Sequence[int], place: str) -> tuple[str, Row]:
    try:
        name, at, used = (cells[index].strip() for index in places)
        row = Row(float(at), round(float(used)))
    except (IndexError, ValueError, OverflowError) as error:
        raise InputError(f"{place}: a name, seconds and bytes are expected, got {','.join(cells)[:80]!r}") from error
    if not (0 <= row.used_bytes <= wire.COUNT_MAX and -1e12 < row.at < 1e12):  # noqa: PLR2004 - the wire's bounds
        raise InputError(f"{place}: out of all bounds: {','.join(cells)!r}")
    return name[: wire.NAME_CHARS_MAX] or "series", row


def recording_of(name: str, rows: Sequence[Row], capacity_bytes: int, *, gpu: str = GPU) -> Recording:
    """One series as one card. Where it reaches the capacity it ends, out of memory."""
    start = BEGINNING - rows[0].at
    return Recording(
        node=name,
        messages=list(_messages(rows, capacity_bytes, gpu, start)),
        gpus=(gpu_facts(gpu, capacity_bytes),),
        ended_at=start + rows[-1].at if rows[-1].used_bytes < capacity_bytes else None,
    )


def _messages(rows: Sequence[Row], capacity_bytes: int, gpu: str, start: float) -> Iterator[wire.Sample | wire.Event]:
    for row in rows:
        at = start + row.at
        if row.used_bytes >= capacity_bytes:
            yield out_of_memory(at, gpu, capacity_bytes)
            return
        yield wire.Sample(seq=0, at=at, gpus=(wire.GpuSample(gpu=gpu, used_bytes=row.used_bytes),))


def out_of_memory(at: float, gpu: str, capacity_bytes: int) -> wire.Event:
    """What a series that reaches its capacity says."""
    body = wire.DeviceOom(error="capacity reached", gpu=gpu, total_bytes=capacity_bytes)
    return wire.Event(seq=0, at=at, body=body, origin=wire.Origin(source="series"))
