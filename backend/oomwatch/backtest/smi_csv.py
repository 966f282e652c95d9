"""What nvidia-smi printed as CSV, as a recording of all its cards."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from oomwatch import wire
from oomwatch.backtest.plain_csv import out_of_memory
from oomwatch.backtest.recording import BEGINNING, Message, Recording, gpu_facts
from oomwatch.backtest.smi_rows import ADVICE, Row, Table, bytes_of
from oomwatch.backtest.source import InputError, Known

_SAME_MOMENT_SECONDS = 0.3
_INTERVAL_SECONDS = 1.0  # of rows without times, where --interval says nothing


def read_smi(path: Path, known: Known) -> Recording:
    """All cards of a table as one node. Raises InputError."""
    table = Table(path, known.columns)
    if not table.rows:
        raise InputError(f"{path}: no row with memory.used; {ADVICE}")
    labels = _labels(path, table)
    totals = _totals(path, table, known)
    facts = tuple(
        gpu_facts(
            label,
            totals[gpu],
            table.cards[gpu].get("name", "")[: wire.NAME_CHARS_MAX] or "GPU",
            reserved_bytes=min(max(bytes_of(table.cards[gpu].get("memory.reserved", "")) or 0, 0), totals[gpu]),
        )
        for gpu, label in labels.items()
    )
    messages = list(_messages(table.rows, labels, totals, known))
    dated = table.rows[0].at is not None
    return Recording(node=path.name[: wire.NAME_CHARS_MAX], messages=messages, gpus=facts, dated=dated)


def _labels(path: Path, table: Table) -> dict[str, str]:
    """The label of each card: its index where that is told, else its place in the list."""
    times = [row.at for row in table.rows if row.at is not None]
    close = any(0 <= later - before < _SAME_MOMENT_SECONDS for before, later in pairwise(times))
    if table.identity is None and close:
        raise InputError(f"{path}: rows of several cards without index or uuid; {ADVICE}")
    by_index = table.identity == "index"
    return {gpu: gpu if by_index else str(place) for place, gpu in enumerate(table.cards)}


def _totals(path: Path, table: Table, known: Known) -> dict[str, int]:
    """The size of each card."""
    if known.capacity_bytes:
        return dict.fromkeys(table.cards, known.capacity_bytes)
    totals: dict[str, int] = {}
    for row in table.rows:
        free_bytes = bytes_of(table.cards[row.gpu].get("memory.free", ""))
        total_bytes = row.total_bytes or (free_bytes + (row.used_bytes or 0) if free_bytes is not None else None)
        if total_bytes and totals.setdefault(row.gpu, total_bytes) != row.total_bytes and table.guessed:
            raise InputError(f"{path}: what seems to be memory.total changes: say what the columns are, with --columns")
    unknown = [gpu for gpu in table.cards if gpu not in totals]
    if unknown:
        raise InputError(f"{path}: how large is GPU {unknown[0]}? Give --capacity 80GiB, or a column memory.total")
    return totals


def _messages(rows: Sequence[Row], labels: dict[str, str], totals: dict[str, int], known: Known) -> Iterator[Message]:
    """One sample for each round over the cards. It ends where a card is as full as a person said that it can be."""
    interval_seconds = known.interval_seconds or _INTERVAL_SECONDS
    at, behind_seconds = BEGINNING - interval_seconds, 0.0
    for moment in _rounds(rows):
        first = moment[0].at
        if first is None:
            at += interval_seconds
        else:
            if first + behind_seconds < at:  # the clock was set back, as at the end of summer time
                behind_seconds = at + interval_seconds - first
            at = first + behind_seconds
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
    return wire.GpuSample(
        gpu=label,
        status="ok" if row.used_bytes is not None else "no_data",
        used_bytes=row.used_bytes,
        utilization_ratio=row.utilization_ratio,
    )
