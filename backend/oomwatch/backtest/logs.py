"""Logs to what they tell, in order: read by the agent's own parsers, with the times that stand in their lines."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.backtest.files import blocks_of
from oomwatch.backtest.source import InputError
from oomwatch.backtest.stamps import Stamps
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.scan import Chunk

_RAY_FILE = re.compile(r"worker-[0-9a-f]{8,64}-[0-9a-f]{8}-(?P<pid>\d{1,10})\.(?:out|err)(?:\.gz)?$")
_STAMPED_STEPS_RATIO = 0.8  # so many steps must have a time of their own
_RUSHED_RATIO = 0.5


class Told(NamedTuple):
    """One event of a log, with where it stood, and when it was written where the log says so."""

    body: wire.EventBody
    origin: wire.Origin
    run: str | None
    line: int
    stamp: float | None

    @property
    def writer(self) -> str | None:
        """Who printed it. A process' own lines lack the address that others give of it, so the pid has to do."""
        if self.origin.pid is not None:
            return f"pid {self.origin.pid}"
        return None if self.origin.rank is None else f"rank {self.origin.rank}"


class Log(NamedTuple):
    name: str
    told: list[Told]

    @property
    def steps(self) -> int:
        return sum(isinstance(one.body, wire.Step) for one in self.told)

    @property
    def stamped(self) -> bool:
        """Whether the lines' own times tell when each step ended; else they are of a few lines only, or of none."""
        marks = [one.stamp for one in self.told if isinstance(one.body, wire.Step)] or [one.stamp for one in self.told]
        known = sorted({stamp for stamp in marks if stamp is not None})
        return bool(known) and len(known) >= _STAMPED_STEPS_RATIO * len(marks) and not self._is_rushed(known)

    def _is_rushed(self, stamps: Sequence[float]) -> bool:
        """Whether steps claim more time than lies between their lines: the log was written anew, and faster."""
        took = [one.body.step_seconds for one in self.told if isinstance(one.body, wire.Step) and one.body.step_seconds]
        between = [later - before for before, later in pairwise(stamps)]
        return bool(took) and bool(between) and median(between) < _RUSHED_RATIO * median(took)


def read_log(path: Path) -> Log:
    """What a log tells, which may be nothing. Raises InputError for a file that cannot be read."""
    ray = _RAY_FILE.search(path.name)
    reader = LineReader(pid=int(ray["pid"]) if ray else None, errors_only=".err" in path.suffixes)
    stamps = Stamps()
    found: list[Recognised] = []
    number, rest = 1, b""
    for block in blocks_of(path):
        whole, _, rest = (rest + block).rpartition(b"\n")
        if whole:
            number += _read(reader, stamps, whole + b"\n", number, found)
    if rest:
        _read(reader, stamps, rest + b"\n", number, found)
    found += reader.end()
    run = reader.run
    return Log(path.name, [_told(one, path.name, stamps, run) for one in found])


def _read(reader: LineReader, stamps: Stamps, data: bytes, number: int, found: list[Recognised]) -> int:
    data = data.replace(b"\0", b"")
    found += reader.read(Chunk(data, number))
    lines = data.split(b"\n")[:-1]
    stamps.feed(lines, number)
    return len(lines)


def _told(one: Recognised, name: str, stamps: Stamps, run: str | None) -> Told:
    source = name[: wire.NAME_CHARS_MAX]
    return Told(one.body, one.origin(source), one.run or run, one.line or 0, stamps.at(one.line))


class _Metrics(msgspec.Struct):
    step: int
    data: dict[str, object]


def check_metrics(path: Path) -> None:
    """Look for lines that are none of the file logger's. Raises InputError at the first; the last may be cut short."""
    number, rest = 0, b""
    for block in blocks_of(path):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number += 1
            if line.strip():
                _check_metrics_line(line, f"{path}:{number}")


def _check_metrics_line(line: bytes, place: str) -> None:
    try:
        msgspec.json.decode(re.sub(rb": ?(?:NaN|-?Infinity)\b", b": null", line), type=_Metrics)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            f'{place}: a line {{"step": n, "data": {{...}}}} of the file logger is expected: {error}'
        ) from error
