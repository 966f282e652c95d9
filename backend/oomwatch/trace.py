"""A recording of exactly what the engine was given, one JSON line each, and the engine fed from it again.

    {"now": 12.5, "node": "gpu-01", "message": {...}}                    observed
    {"now": 12.5, "node": "gpu-01", "message": {...}, "recalled": true}  taken in from the database at the start
    {"now": 12.5, "restored": [{...}]}                                   alerts that were open before a restart
    {"advance": 13.0}                                                    time passed

The engine's answers depend on nothing else but the rules, so a trace replays to the same transitions on every machine.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet

logger = logging.getLogger(__name__)


class TraceError(ValueError):
    """A trace that cannot be read. The text names the file and the line."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the engine: `advance`, or something at `now`."""

    now: float | None = None
    node: str | None = None
    message: wire.AgentMessage | None = None
    recalled: bool = False
    restored: tuple[wire.Transition, ...] | None = None
    advance: float | None = None

    def __post_init__(self) -> None:
        if self.advance is None and (self.now is None or (self.message is None) == (self.restored is None)):
            raise ValueError('a line has "advance", or "now" with a "message" or with "restored"')


_decoder = msgspec.json.Decoder(Line)


class TraceWriter:
    """Appends to a file. A disk that fails ends the recording and nothing else."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the file cannot be opened."""
        self._path = path
        self._file: BinaryIO | None = path.open("ab")

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> None:
        self._write(Line(now=now, node=node, message=message))

    def recall(self, message: wire.AgentMessage, node: str, now: float) -> None:
        self._write(Line(now=now, node=node, message=message, recalled=True))

    def restore(self, firing: Sequence[wire.Transition], now: float) -> None:
        self._write(Line(now=now, restored=tuple(firing)))

    def advance(self, now: float) -> None:
        """Also puts on disk what was written so far, so that a killed server leaves whole lines."""
        self._write(Line(advance=now))
        self._attempt(lambda file: file.flush())

    def close(self) -> None:
        self._attempt(lambda file: file.close())
        self._file = None

    def _write(self, line: Line) -> None:
        text = msgspec.json.encode(line) + b"\n"
        self._attempt(lambda file: file.write(text))

    def _attempt(self, act: Callable[[BinaryIO], object]) -> None:
        if self._file is None:
            return
        try:
            act(self._file)
        except OSError as error:
            logger.warning("recording to %s has ended: %s", self._path, error)
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def read_trace(path: Path) -> Iterator[Line]:
    """The lines of a trace. Raises TraceError; a last line that was cut short is the end."""
    try:
        with path.open("rb") as file:
            yield from _lines(file, path)
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}") from error


def _lines(file: Iterable[bytes], path: Path) -> Iterator[Line]:
    for number, text in enumerate(file, start=1):
        if not text.endswith(b"\n"):
            return
        try:
            yield _decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"{path}:{number}: {error}") from error


def replay(trace: Iterable[Line], rules: RuleSet) -> Iterator[wire.Transition]:
    """What these rules would have said, in order, without the words."""
    engine = Engine(rules)
    for line in trace:
        yield from _give(engine, line)


def _give(engine: Engine, line: Line) -> Sequence[wire.Transition]:
    if line.advance is not None:
        return engine.advance(line.advance)
    now, node = line.now or 0.0, line.node or ""
    if line.message is None:
        return engine.restore(line.restored or (), now)
    if line.recalled:
        engine.recall(line.message, node, now)
        return ()
    return engine.observe(line.message, node, now)
