"""What kind of file something is, told by what stands in it."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from oomwatch.backtest import KINDS, plain_csv, smi_rows
from oomwatch.backtest.files import blocks_of, head_of
from oomwatch.backtest.source import InputError
from oomwatch_agent.logs.reader import LineReader
from oomwatch_agent.logs.scan import Chunk

BINARY_RATIO = 0.05


class _TraceKeys(msgspec.Struct):
    now: float | None = None
    advance: float | None = None
    excused: float | None = None
    jumped: float | None = None
    forgotten: float | None = None


class _MetricsKeys(msgspec.Struct):
    step: int
    data: dict[str, msgspec.Raw]


def kind_of(path: Path) -> str:
    """One of KINDS. Raises InputError that says what was expected."""
    found = recognised(path)
    if found is None:
        expected = "; ".join(KINDS.values())
        raise InputError(
            f"{path}: nothing in it is recognised. Expected is {expected}. Say --kind to have it read as one"
        )
    return found


def recognised(path: Path) -> str | None:
    """One of KINDS, or None. Raises InputError for a file that cannot be read."""
    head = head_of(path)
    if _is_binary(head):
        return None
    first = next((line for line in head.decode("utf-8", "replace").splitlines() if line.strip()), "")
    found = next((kind for kind, is_it in _TESTS.items() if is_it(first)), None)
    return found or ("log" if _tells_anything(path) else None)


def _is_binary(head: bytes) -> bool:
    """A checkpoint, a picture, a database. Logs may hold a few NUL bytes."""
    return head.count(b"\0") > BINARY_RATIO * len(head)


def _is_trace(first: str) -> bool:
    keys = _decoded(first, _TraceKeys)
    return keys is not None and any(getattr(keys, name) is not None for name in keys.__struct_fields__)


def _is_metrics(first: str) -> bool:
    return _decoded(first.replace("NaN", "null").replace("Infinity", "null"), _MetricsKeys) is not None


def _decoded(line: str, kind: type[msgspec.Struct]) -> msgspec.Struct | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _is_table(first: str) -> bool:
    return len(set(plain_csv.header_of(first)) & set(plain_csv.COLUMNS)) > 1


def _is_smi(first: str) -> bool:
    return smi_rows.is_header(first) or smi_rows.looks_like_rows(first)


def _tells_anything(path: Path) -> bool:
    """Whether the agent's parsers find anything in it, which may be after much chatter."""
    reader, rest = LineReader(), b""
    for block in blocks_of(path):
        whole, _, rest = (rest + block.replace(b"\0", b"")).rpartition(b"\n")
        if next(reader.read(Chunk(whole + b"\n", 0)), None) is not None:
            return True
    found = next(reader.read(Chunk(rest + b"\n", 0)), None) or next(reader.end(), None)
    return found is not None


_TESTS: dict[str, Callable[[str], bool]] = {
    "trace": _is_trace,
    "metrics": _is_metrics,
    "csv": _is_table,
    "nvidia-smi": _is_smi,
}
