"""A recording of exactly what the engine was given, one JSON line each, and the engine fed from it again.

    {"now": 12.5, "node": "gpu-01", "message": {...}}                    observed
    {"now": 12.5, "node": "gpu-01", "message": {...}, "recalled": true}  taken in from the database at the start
    {"remembered": [{...}]}                                              what runs were that started before the server
    {"now": 12.5, "restored": [{...}]}                                   alerts that were open before a restart
    {"now": 12.5, "followed": {...}}                                     another server, which speaks for it, said this
    {"now": 12.5, "retired": "gpu-01"}                                   a person said that a node is gone
    {"advance": 13.0}                                                    time passed
    {"excused": 8.5}                                                     the server stood still for so long
    {"excused": 1.0, "nodes": ["gpu-01"]}                                it was cut off from these for so long
    {"jumped": -3600.0}                                                  its clock was set by so much
    {"forgotten": 12.5}                                                  what was last heard before is dropped

The engine's answers depend on nothing else but the rules, so a trace replays to the same transitions on every machine.
"""

import contextlib
import gzip
import logging
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from oomwatch import wire
from oomwatch.advice import advise
from oomwatch.core.engine import Engine
from oomwatch.core.past import Past
from oomwatch.core.rule import RuleSet
from oomwatch.oserror import with_remedy

logger = logging.getLogger(__name__)

_GZIP_MAGIC = b"\x1f\x8b"


class TraceError(ValueError):
    """A trace that cannot be read. The text names the file and the line."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the engine: one of the last five alone, or something at `now`."""

    now: wire.UnixSeconds | None = None
    node: str | None = None
    message: wire.AgentMessage | None = None
    recalled: bool = False
    restored: tuple[wire.Transition, ...] | None = None
    followed: wire.Transition | None = None
    retired: str | None = None
    remembered: tuple[Past, ...] | None = None
    advance: wire.UnixSeconds | None = None
    excused: wire.Seconds | None = None
    nodes: tuple[str, ...] | None = None
    jumped: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)] | None = None
    forgotten: wire.UnixSeconds | None = None

    def __post_init__(self) -> None:
        at_now = (self.message, self.restored, self.followed, self.retired)
        given = [one for one in at_now if one is not None]
        alone = [
            one for one in (self.remembered, self.advance, self.excused, self.jumped, self.forgotten) if one is not None
        ]
        if len(given) + len(alone) != 1 or (given and self.now is None):
            raise ValueError('a line has "advance", or "now" with a "message" or with "restored", or is of its kin')


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

    def remember(self, pasts: Sequence[Past]) -> None:
        self._write(Line(remembered=tuple(pasts)))

    def restore(self, firing: Sequence[wire.Transition], now: float) -> None:
        self._write(Line(now=now, restored=tuple(firing)))

    def follow(self, word: wire.Transition, now: float) -> None:
        self._write(Line(now=now, followed=word))

    def excuse_silence(self, seconds: float, nodes: Collection[str] | None = None) -> None:
        self._write(Line(excused=seconds, nodes=None if nodes is None else tuple(nodes)))

    def clock_jumped(self, seconds: float) -> None:
        self._write(Line(jumped=seconds))

    def retire(self, node: str, now: float) -> None:
        self._write(Line(now=now, retired=node))

    def forget(self, before: float) -> None:
        self._write(Line(forgotten=before))

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
            logger.warning("recording to %s has ended: %s", self._path, with_remedy(error))
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def read_trace(path: Path) -> Iterator[Line]:
    """The lines of a trace, packed with gzip or not. Raises TraceError; a last line that was cut short is the end."""
    try:
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == _GZIP_MAGIC
            with gzip.open(file) if packed else file as lines:
                yield from _lines(lines, path)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"cannot read the trace {path}: {with_remedy(error)}") from error


def _lines(file: Iterable[bytes], path: Path) -> Iterator[Line]:
    for number, text in enumerate(file, start=1):
        if not text.endswith(b"\n"):
            return
        try:
            yield _decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(f"{path}:{number}: {error}") from error


def replay(trace: Iterable[Line], rules: RuleSet) -> Iterator[wire.Transition]:
    """What these rules would have said, in order, with what they would have advised, and without their own words."""
    engine = Engine(rules)
    for line in trace:
        yield from (advise(one, engine.fleet) for one in give(engine, line))


def give(engine: Engine, line: Line) -> Sequence[wire.Transition]:
    if line.advance is not None:
        return engine.advance(line.advance)
    now, node = line.now or 0.0, line.node or ""
    if line.restored is not None:
        return engine.restore(line.restored, now)
    if line.retired is not None:
        return engine.retire(line.retired, now)
    if line.message is not None and not line.recalled:
        return engine.observe(line.message, node, now)
    _move(engine, line, node, now)
    return ()


def _move(engine: Engine, line: Line, node: str, now: float) -> None:
    """What changes the engine and tells nobody."""
    if line.message is not None:
        engine.recall(line.message, node, now)
    if line.followed is not None:
        engine.follow(line.followed, now)
    if line.remembered is not None:
        engine.remember(line.remembered)
    if line.excused is not None:
        engine.excuse_silence(line.excused, line.nodes)
    if line.jumped is not None:
        engine.clock_jumped(line.jumped)
    if line.forgotten is not None:
        engine.forget(line.forgotten)
