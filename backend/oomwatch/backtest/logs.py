"""Logs to what they tell, in order: read by the agent's own parsers, with the times that stand in their lines."""

import re
from collections.abc import Sequence
from pathlib import Path
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
_ENDINGS = (wire.DeviceOom, wire.HostOom)  # of a process that told nothing else: what the run ended with


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
        known = {stamp for stamp in marks if stamp is not None}
        return bool(known) and len(known) >= _STAMPED_STEPS_RATIO * len(marks)


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
    except msgspec.DecodeError as error:
        raise InputError(
            f'{place}: a line {{"step": n, "data": {{...}}}} of the file logger is expected: {error}'
        ) from error


# ---------------------------------------------------------------- several logs of one run


def united(logs: Sequence[Log]) -> list[Told]:
    """Several logs of one run as one, in order. What one repeats of another is told once.

    The log with the most steps leads; what stands only in another (a rank's own file) goes to the step in which its
    process printed it, told by how often its lines have come round.
    """
    main = max(logs, key=lambda log: (log.steps, len(log.told)))
    told = list(main.told)
    for log in logs:
        if log is not main:
            told = _with(told, log)
    return told


def _with(told: list[Told], log: Log) -> list[Told]:
    if log.stamped and any(one.stamp is not None for one in told):
        fresh = _without_repetitions(told, log.told)
        return sorted([*told, *fresh], key=lambda one: one.stamp or 0.0)
    told = _with_figures(told, log)
    rest = [one for one in log.told if not isinstance(one.body, wire.Step) or not _has_steps(told)]
    fresh = _without_repetitions(told, rest)
    return _dealt(told, fresh) if fresh else told


def _has_steps(told: Sequence[Told]) -> bool:
    return any(isinstance(one.body, wire.Step) for one in told)


def _with_figures(told: Sequence[Told], log: Log) -> list[Told]:
    """Steps filled in with what another log says of the same ones; their order of coming tells resumed ones apart."""
    others: dict[int, list[wire.Step]] = {}
    for one in log.told:
        if isinstance(one.body, wire.Step):
            others.setdefault(one.body.step, []).append(one.body)
    filled = []
    for one in told:
        if isinstance(one.body, wire.Step) and others.get(one.body.step):
            filled.append(one._replace(body=_filled(one.body, others[one.body.step].pop(0))))
        else:
            filled.append(one)
    return filled


def _filled(known: wire.Step, other: wire.Step) -> wire.Step:
    fields = msgspec.structs.asdict(known)
    more = {
        name: value
        for name, value in msgspec.structs.asdict(other).items()
        if fields[name] in (None, {}) and value not in (None, {})
    }
    return msgspec.structs.replace(known, **more) if more else known


def _without_repetitions(told: Sequence[Told], others: Sequence[Told]) -> list[Told]:
    """What of `others` is not in `told`: an event that one process tells once stands once in each log."""
    counts: dict[object, int] = {}
    for one in told:
        counts[_key(one)] = counts.get(_key(one), 0) + 1
    fresh = []
    for one in others:
        left = counts.get(_key(one), 0)
        if left:
            counts[_key(one)] = left - 1
        else:
            fresh.append(one)
    return fresh


def _key(one: Told) -> object:
    """Ray's own files do not say the address; errors may be told by whoever waited for them."""
    if isinstance(one.body, wire.DeviceOom):
        return ("oom", one.origin.pid, one.body.tried_bytes, one.body.allocated_bytes)
    return (one.origin.pid, msgspec.json.encode(one.body))


def _dealt(told: Sequence[Told], fresh: Sequence[Told]) -> list[Told]:
    """Events put to the steps that they belong to: each process' lines come round once a step."""
    rounds: dict[int, list[Told]] = {}
    counts: dict[tuple[str | None, object], int] = {}
    current: dict[str | None, int] = {}
    steps = sum(isinstance(one.body, wire.Step) for one in told)
    for one in fresh:
        point = getattr(one.body, "at_point", None)
        if point is not None:
            seen = (one.writer, point)
            counts[seen] = counts.get(seen, 0) + 1
            current[one.writer] = max(current.get(one.writer, 0), counts[seen] - 1)
        last = current.get(one.writer, steps if isinstance(one.body, _ENDINGS) else 0)
        rounds.setdefault(last, []).append(one)
    dealt: list[Told] = []
    step = 0
    for one in told:
        if isinstance(one.body, wire.Step):
            dealt += rounds.pop(step, [])
            step += 1
        dealt.append(one)
    rest = [one for number in sorted(rounds) for one in rounds[number]]
    return [*dealt, *rest] if steps else [*rest, *dealt]
