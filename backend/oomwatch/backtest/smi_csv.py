"""What `nvidia-smi --query-gpu=... --format=csv` printed: with or without header and units, again and again with -l."""

import csv
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from oomwatch import wire
from oomwatch.backtest.files import lines_of
from oomwatch.backtest.plain_csv import out_of_memory
from oomwatch.backtest.recording import BEGINNING, Message, Recording, gpu_facts
from oomwatch.backtest.source import InputError, Known

_MIB = 2**20
_UNITS = {"MiB": _MIB, "GiB": 2**30, "KiB": 2**10, "B": 1, "MB": _MIB}
_HEADER_CELL = re.compile(r"(?P<name>[a-z_]+(?:\.[a-z_]+)*)(?: \[(?P<unit>[^\]]+)\])?$")
_TIME = re.compile(r"\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_OWN_TIME = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_SIZE = re.compile(r"\d+(?: MiB)?")
# What stands in a column, and what it is then called.
_FORMS = {
    "timestamp": _TIME,
    "uuid": re.compile(r"(?:GPU|MIG)-[0-9a-f-]{8,}"),
    "pci.bus_id": re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d"),
    "utilization.gpu": re.compile(r"\d+ ?%"),
    "name": re.compile(r"[A-Za-z]{3,}[ \w-]*"),
}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_IDENTITIES = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial")
_ALIASES = {"gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_name": "name"}
_SAME_MOMENT_SECONDS = 0.3
_ADVICE = "record with --query-gpu=timestamp,index,memory.used,memory.total --format=csv"


class Row(NamedTuple):
    at: float | None  # Unix seconds, by the machine's own clock
    gpu: str
    used_bytes: int | None
    values: dict[str, str]
    units: dict[str, str]


def is_header(line: str) -> bool:
    """Whether a line is the header that nvidia-smi prints."""
    cells = [cell.strip() for cell in line.split(",")]
    return all(_HEADER_CELL.match(cell) for cell in cells) and any(cell.startswith("memory.") for cell in cells)


def looks_like_rows(line: str) -> bool:
    """Whether a line without a header is one of nvidia-smi's: its own form of time beside a size."""
    cells = [cell.strip() for cell in line.split(",")]
    return any(_OWN_TIME.fullmatch(cell) for cell in cells) and any(_SIZE.fullmatch(cell) for cell in cells)


def read_smi(path: Path, known: Known) -> Recording:
    """All cards of a table as one node. Raises InputError."""
    rows = list(_rows(path, known))
    if not rows:
        raise InputError(f"{path}: no row with memory.used; {_ADVICE}")
    labels = _labels(path, rows)
    totals = _totals(path, rows, known)
    facts = tuple(_facts(label, gpu, rows, totals[gpu]) for gpu, label in labels.items())
    messages = list(_messages(rows, labels, totals, known))
    dated = rows[0].at is not None
    return Recording(node=path.name[: wire.NAME_CHARS_MAX], messages=messages, gpus=facts, dated=dated)


# ---------------------------------------------------------------- rows


def _rows(path: Path, known: Known) -> Iterator[Row]:
    columns: list[tuple[str, str]] = [(_ALIASES.get(name, name), "") for name in known.columns]
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        if is_header(line):
            columns = _columns(line)
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        columns = columns or _guessed(path, number, cells)
        if len(cells) != len(columns):
            raise InputError(f"{path}:{number}: {len(columns)} columns are expected, got {len(cells)}: {line[:80]!r}")
        yield _row(f"{path}:{number}", cells, columns)


def _columns(header: str) -> list[tuple[str, str]]:
    found = (_HEADER_CELL.match(cell.strip()) for cell in header.split(","))
    return [(_ALIASES.get(one["name"], one["name"]), one["unit"] or "") for one in found if one]


def _guessed(path: Path, number: int, cells: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a table without a header, by what stands in them. Sizes need their unit for that."""
    sizes = [index for index, cell in enumerate(cells) if re.fullmatch(r"[\d.]+ [KMG]iB", cell)]
    if not sizes or len(sizes) > 2:  # noqa: PLR2004 - used, and total
        raise InputError(
            f"{path}:{number}: without a header it is not clear what the columns are: say so, "
            "as in --columns timestamp,index,memory.used,memory.total"
        )
    amounts = {index: float(cells[index].split()[0]) for index in sizes}
    used = min(amounts, key=lambda index: amounts[index])
    return [(_guess(index, cell, used, amounts), "") for index, cell in enumerate(cells)]


def _guess(index: int, cell: str, used: int, amounts: dict[int, float]) -> str:
    if index in amounts:
        return "memory.used" if index == used else "memory.total"
    if cell.isdigit():
        return "index" if index <= 1 else f"column {index + 1}"
    return next((name for name, form in _FORMS.items() if form.fullmatch(cell)), f"column {index + 1}")


def _row(place: str, cells: Sequence[str], columns: Sequence[tuple[str, str]]) -> Row:
    values = {name: cell for (name, _), cell in zip(columns, cells, strict=True)}
    units = {name: unit for name, unit in columns if unit}
    if "memory.used" not in values:
        raise InputError(f"{place}: there is no column memory.used; {_ADVICE}")
    gpu = next((values[name] for name in _IDENTITIES if name in values), "0")
    at = _time(place, values["timestamp"]) if "timestamp" in values else None
    return Row(at, gpu, _bytes(values["memory.used"], units.get("memory.used", "MiB")), values, units)


def _time(place: str, text: str) -> float:
    """Local time without a zone: taken as UTC, for only differences count."""
    if not _TIME.fullmatch(text):
        raise InputError(f"{place}: {text[:40]!r} is no time of nvidia-smi (2026/01/31 12:00:00.000)")
    try:
        return datetime.fromisoformat(text.replace("/", "-").partition(".")[0]).replace(
            tzinfo=timezone.utc
        ).timestamp() + float(f"0.{text.partition('.')[2] or 0}")
    except ValueError as error:
        raise InputError(f"{place}: {text[:40]!r} is no time: {error}") from error


def _bytes(text: str, unit: str) -> int | None:
    number = _NUMBER.match(text)
    if number is None:
        return None  # [N/A], [Not Supported], [GPU is lost]
    own = text[number.end() :].strip()
    return round(float(number[0]) * _UNITS.get(own or unit, _MIB))


# ---------------------------------------------------------------- cards


def _labels(path: Path, rows: Sequence[Row]) -> dict[str, str]:
    """The label of each card: its index where that is told, else its place in the list."""
    known = [name for name in _IDENTITIES if name in rows[0].values]
    if not known:
        times = [row.at for row in rows if row.at is not None]
        close = sum(later - before < _SAME_MOMENT_SECONDS for before, later in pairwise(times))
        if close:
            raise InputError(f"{path}: rows of several cards without index or uuid; {_ADVICE}")
    gpus = list(dict.fromkeys(row.gpu for row in rows))
    return {gpu: gpu if known[:1] == ["index"] else str(place) for place, gpu in enumerate(gpus)}


def _totals(path: Path, rows: Sequence[Row], known: Known) -> dict[str, int]:
    totals: dict[str, int] = {}
    for row in rows:
        if row.gpu in totals:
            continue
        total = known.capacity_bytes or _total(row)
        if total is None and (free := _bytes(row.values.get("memory.free", ""), "MiB")) is not None:
            total = free + (row.used_bytes or 0)
        if total:
            totals[row.gpu] = total
    if (
        not known.columns
        and not known.capacity_bytes
        and any(_total(row) not in (None, totals.get(row.gpu)) for row in rows)
    ):
        raise InputError(f"{path}: what seems to be memory.total changes: say what the columns are, with --columns")
    unknown = [row.gpu for row in rows if row.gpu not in totals]
    if unknown:
        raise InputError(f"{path}: how large is GPU {unknown[0]}? Give --capacity 80GiB, or a column memory.total")
    return totals


def _total(row: Row) -> int | None:
    return _bytes(row.values.get("memory.total", ""), row.units.get("memory.total", "MiB"))


def _facts(label: str, gpu: str, rows: Sequence[Row], total_bytes: int) -> wire.GpuFacts:
    first = next(row for row in rows if row.gpu == gpu)
    reserved = _bytes(first.values.get("memory.reserved", ""), "MiB") or 0
    return gpu_facts(label, total_bytes, first.values.get("name") or "GPU", reserved_bytes=reserved)


def _messages(rows: Sequence[Row], labels: dict[str, str], totals: dict[str, int], known: Known) -> Iterator[Message]:
    """One sample for each round over the cards."""
    for number, moment in enumerate(_rounds(rows)):
        first = moment[0].at
        at = BEGINNING + number * (known.interval_seconds or 1.0) if first is None else first
        full = next((row for row in moment if known.capacity_bytes and (row.used_bytes or 0) >= totals[row.gpu]), None)
        if full is not None:
            yield out_of_memory(at, labels[full.gpu], totals[full.gpu])
            return
        yield wire.Sample(seq=0, at=at, gpus=tuple(_reading(row, labels[row.gpu]) for row in moment))


def _rounds(rows: Sequence[Row]) -> Iterator[list[Row]]:
    moment: list[Row] = []
    for row in rows:
        if any(row.gpu == other.gpu for other in moment):
            yield moment
            moment = []
        moment.append(row)
    if moment:
        yield moment


def _reading(row: Row, label: str) -> wire.GpuSample:
    utilization = _NUMBER.match(row.values.get("utilization.gpu", ""))
    return wire.GpuSample(
        gpu=label,
        status="ok" if row.used_bytes is not None else "no_data",
        used_bytes=row.used_bytes,
        utilization_ratio=float(utilization[0]) / 100 if utilization else None,
    )
