"""Tables into files: CSV, and Parquet by pyarrow, which is an optional extra."""

# ruff: noqa: PLC0415 - pyarrow may be missing, and takes a second to load

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO, TypeAlias

from oomwatch.commands.export.tables import Column, Row
from oomwatch.options import SettingError

# What a spreadsheet would take for a formula, and work out: a name may be anything.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
GROUP_ROWS = 65_536  # of Parquet: what is in memory until it is written
Write: TypeAlias = Callable[[Sequence[Row]], None]


@contextmanager
def csv_to(file: TextIO, columns: Sequence[Column]) -> Iterator[Write]:
    """Writes rows as CSV, with a line of names. A text that is no formula, and looks like one, has a ' before it."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.name for column in columns])
    times = [place for place, column in enumerate(columns) if column.kind == "time"]
    texts = [place for place, column in enumerate(columns) if column.kind == "text"]

    def write(rows: Sequence[Row]) -> None:
        for row in rows:
            cells = list(row)
            for place in times:
                cells[place] = moment(cells[place])
            for place in texts:
                if cells[place] is not None and cells[place].startswith(_FORMULAS):
                    cells[place] = f"'{cells[place]}"
            writer.writerow(cells)

    yield write


def moment(at_ms: int) -> str:
    """ISO 8601, UTC."""
    at = datetime.fromtimestamp(at_ms // 1000, timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


@contextmanager
def parquet_to(file: io.BufferedIOBase, columns: Sequence[Column]) -> Iterator[Write]:
    """Writes rows as Parquet. Raises SettingError where pyarrow is not installed."""
    check_parquet()
    import pyarrow
    import pyarrow.parquet

    kinds = {
        "time": pyarrow.timestamp("ms", tz="UTC"), "text": pyarrow.string(), "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
    }  # fmt: skip
    schema = pyarrow.schema([(column.name, kinds[column.kind]) for column in columns])
    waiting: list[Row] = []

    def flush() -> None:
        if waiting:
            cells = [
                pyarrow.array(cell, field.type) for cell, field in zip(zip(*waiting, strict=True), schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(cells, schema=schema))
            waiting.clear()

    def write(rows: Sequence[Row]) -> None:
        waiting.extend(rows)
        if len(waiting) >= GROUP_ROWS:
            flush()

    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        yield write
        flush()


def check_parquet() -> None:
    """Raises SettingError where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise SettingError(
            'flag --format: Parquet needs pyarrow, which is not installed; pip install "oomwatch[parquet]", or leave '
            "--format out for CSV"
        )


def refuse_existing(paths: Sequence[Path], *, force: bool) -> None:
    """Raises SettingError for one that is there already."""
    for path in paths:
        if path.exists() and not force:
            raise SettingError(f"flag --output: {path} is there already; name another folder, or add --force")
