"""The rows of what `nvidia-smi --query-gpu=... --format=csv` printed, in all of its forms: with or without header and
units, the header again and again with -l, the last line cut short."""

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from oomwatch import wire
from oomwatch.backtest.files import lines_of
from oomwatch.backtest.source import InputError

_MIB = 2**20
_UNITS = {"MiB": _MIB, "GiB": 2**30, "KiB": 2**10, "B": 1, "MB": _MIB}
_HEADER_CELL = re.compile(r"(?P<name>[a-z_]+(?:\.[a-z_]+)*)(?: \[(?P<unit>[^\]]+)\])?$")
_TIME = re.compile(r"\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_EARLIEST_TIME = "1971"  # no clock of such a machine shows less
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
IDENTITIES = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial")
_ALIASES = {"gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_name": "name"}
ADVICE = "record with --query-gpu=timestamp,index,memory.used,memory.total --format=csv"


class Row(NamedTuple):
    at: float | None  # Unix seconds, by the machine's own clock
    gpu: str
    used_bytes: int | None
    total_bytes: int | None
    utilization_ratio: float | None


def is_header(line: str) -> bool:
    """Whether a line is the header that nvidia-smi prints."""
    cells = [cell.strip() for cell in line.split(",")]
    return all(_HEADER_CELL.match(cell) for cell in cells) and any(cell.startswith("memory.") for cell in cells)


def looks_like_rows(line: str) -> bool:
    """Whether a line without a header is one of nvidia-smi's: its own form of time beside a size."""
    cells = [cell.strip() for cell in line.split(",")]
    return any(_OWN_TIME.fullmatch(cell) for cell in cells) and any(_SIZE.fullmatch(cell) for cell in cells)


class Table:
    """All rows, and what the first row of each card says of it: text by column."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """Raises InputError. `columns` are those of a table without a header."""
        self.rows: list[Row] = []
        self.cards: dict[str, dict[str, str]] = {}
        self.identity: str | None = None  # the column that tells cards apart
        self.guessed = False
        self._path = path
        self._columns = [(_ALIASES.get(name, name), "") for name in columns]
        cut: InputError | None = None
        for number, line in enumerate(lines_of(path), start=1):
            if cut is not None:
                raise cut
            if line.strip():
                cut = self._read(line, number)
        if cut is not None and not self.rows:
            raise cut

    def _read(self, line: str, number: int) -> InputError | None:
        """Take in a line. Gives the error of one with too few columns, which the last may have: it was cut short."""
        if is_header(line):
            self._columns = _columns(line)
            return None
        cells = [cell.strip() for cell in line.split(",")]
        place = f"{self._path}:{number}"
        if not self._columns:
            self._columns, self.guessed = _guessed(place, cells), True
        if len(cells) != len(self._columns):
            wanted = len(self._columns)
            return InputError(f"{place}: {wanted} columns are expected, got {len(cells)}: {line[:80]!r}")
        self._add(dict(zip((name for name, _ in self._columns), cells, strict=True)), place)
        return None

    def _add(self, values: dict[str, str], place: str) -> None:
        if "memory.used" not in values:
            raise InputError(f"{place}: there is no column memory.used; {ADVICE}")
        self.identity = next((name for name in IDENTITIES if name in values), None)
        gpu = values[self.identity] if self.identity else "0"
        if not 0 < len(gpu) <= wire.NAME_CHARS_MAX:
            raise InputError(f"{place}: {gpu[:40]!r} tells no card; {ADVICE}")
        self.cards.setdefault(gpu, values)
        if len(self.cards) > wire.GPUS_MAX:
            raise InputError(f"{place}: more than {wire.GPUS_MAX} cards; record each machine into a file of its own")
        units = dict(self._columns)
        used_bytes = bytes_of(values["memory.used"], units["memory.used"] or "MiB")
        total_bytes = bytes_of(values.get("memory.total", ""), units.get("memory.total") or "MiB")
        if not all(0 <= size <= wire.COUNT_MAX for size in (used_bytes, total_bytes) if size is not None):
            raise InputError(f"{place}: out of all bounds: {','.join(values.values())[:80]!r}")
        at = _time(place, values["timestamp"]) if "timestamp" in values else None
        self.rows.append(Row(at, gpu, used_bytes, total_bytes, _ratio(values.get("utilization.gpu", ""))))


def _columns(header: str) -> list[tuple[str, str]]:
    found = (_HEADER_CELL.match(cell.strip()) for cell in header.split(","))
    return [(_ALIASES.get(one["name"], one["name"]), one["unit"] or "") for one in found if one]


def _guessed(place: str, cells: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a table without a header, by what stands in them. Sizes need their unit for that."""
    sizes = [index for index, cell in enumerate(cells) if re.fullmatch(r"[\d.]+ [KMG]iB", cell)]
    if not sizes or len(sizes) > 2:  # noqa: PLR2004 - used, and total
        raise InputError(
            f"{place}: without a header it is not clear what the columns are: say so, "
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


def _ratio(text: str) -> float | None:
    percent = _NUMBER.match(text)
    return max(float(percent[0]), 0.0) / 100 if percent else None


def _time(place: str, text: str) -> float:
    """Local time without a zone: taken as UTC, for only differences count."""
    if not _TIME.fullmatch(text) or text < _EARLIEST_TIME:
        raise InputError(f"{place}: {text[:40]!r} is no time of nvidia-smi (2026/01/31 12:00:00.000)")
    try:
        return datetime.fromisoformat(text.replace("/", "-").partition(".")[0]).replace(
            tzinfo=timezone.utc
        ).timestamp() + float(f"0.{text.partition('.')[2] or 0}")
    except ValueError as error:
        raise InputError(f"{place}: {text[:40]!r} is no time: {error}") from error


def bytes_of(text: str, unit: str = "MiB") -> int | None:
    """Bytes of "20000 MiB", or of a bare number of this unit; None where there is no number."""
    number = _NUMBER.match(text)
    if number is None:
        return None  # [N/A], [Not Supported], [GPU is lost]
    own = text[number.end() :].strip()
    return round(float(number[0]) * _UNITS.get(own or unit, _MIB))
