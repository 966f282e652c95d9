"""`oomwatch-agent parse FILE...`: what is recognised in logs, as JSON lines, and why a log says nothing.

Standard output has an event a line; standard error has a summary of each file. Nothing is sent anywhere.
"""

import argparse
import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from oomwatch import wire
from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy
from oomwatch.units import counted
from oomwatch_agent.event_files import NAME as EVENT_FILE_NAME
from oomwatch_agent.event_files import EventFile
from oomwatch_agent.hydra import config_beside, is_hydra_file
from oomwatch_agent.logs.context import PhaseMemory
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.own_patterns import OwnPatterns
from oomwatch_agent.ray_session import log_files, logs_folder
from oomwatch_agent.settings import load

_BLOCK_BYTES = 1024 * 1024
_DEBUG = "set VERL_LOGGING_LEVEL=DEBUG in the environment of the training"


def command_line() -> argparse.ArgumentParser:
    """The flags of `oomwatch-agent parse`."""
    parser = argparse.ArgumentParser(prog="oomwatch-agent parse", description=__doc__)
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help='a log, also packed (.gz); "-" for standard input; a Ray session folder',
    )
    parser.add_argument("--config", metavar="FILE", help="the agent's settings file, for the patterns in it")
    return parser


def main(argv: Sequence[str], out: TextIO | None = None, err: TextIO | None = None) -> int:
    """0: all was read, whatever it said; 1: something could not be read; 2: a setting cannot be used."""
    out, err = out or sys.stdout, err or sys.stderr
    namespace = command_line().parse_args(argv)
    try:
        settings = load(["--config", namespace.config] if namespace.config else [], {}).settings
    except SettingError as error:
        print(f"oomwatch-agent: {error}", file=err)
        return 2
    own = OwnPatterns(settings.patterns) if settings.patterns else None
    try:
        return max([_parse(name, own, out, err) for name in namespace.files])
    finally:
        if own:
            own.close()


def _parse(name: str, own: OwnPatterns | None, out: TextIO, err: TextIO) -> int:
    if name == "-":
        return Parsed("stdin", LineReader(own=own)).of_bytes(sys.stdin.buffer, out, err)
    path = Path(name)
    if path.is_dir():
        return _parse_session(path, own, out, err)
    return _parse_file(path, LineReader(own=own, errors_only=path.suffix == ".err"), out, err)


def _parse_session(folder: Path, own: OwnPatterns | None, out: TextIO, err: TextIO) -> int:
    logs, phases = logs_folder(folder), PhaseMemory()
    if logs is None:
        print(f"{folder}: no Ray logs here: a session's folder has worker-*.out and .err files", file=err)
        return 1
    results = [
        _parse_file(path, LineReader(pid=pid, phases=phases, own=own, errors_only=path.suffix == ".err"), out, err)
        for path, _, pid in log_files(logs)
    ]
    return max(results, default=0)


def _parse_file(path: Path, reader: LineReader, out: TextIO, err: TextIO) -> int:
    parsed = Parsed(path.name, reader)
    if is_hydra_file(path):
        return parsed.of_config(config_beside(path), out, err)
    if EVENT_FILE_NAME.match(path.name):
        return parsed.of_event_file(EventFile(path), out, err)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return parsed.of_bytes(file, out, err)
    except BrokenPipeError:  # of the output, and not of the file
        raise
    except (OSError, EOFError, zlib.error) as error:
        print(f"{path}: cannot be read: {with_remedy(error)}", file=err)
        return 1


class Parsed:
    """What one file says, told as it is read, and what it does not say, told at the end."""

    def __init__(self, name: str, reader: LineReader) -> None:
        self._name = name
        self._reader = reader
        self._kinds: Counter[str] = Counter()
        self._lacks = _Lacks()

    def of_bytes(self, file: BinaryIO | gzip.GzipFile, out: TextIO, err: TextIO) -> int:
        """Read a log to its end."""
        splitter = LineSplitter()
        while block := file.read(_BLOCK_BYTES):
            self._tell(self._reader.read(splitter.feed(block)), out)
        rest = splitter.flush()
        self._tell(self._reader.read(rest), out)
        self._tell(self._reader.end(), out)
        lines = rest.number - 1 + bool(rest.data)
        self._sum_up(counted(lines, "line"), err)
        for why in self._reader.reasons():
            print(f"  {why}", file=err)
        for lack in self._lacks.sentences() if lines else ():
            print(f"  {lack}", file=err)
        return 0

    def of_config(self, config: wire.Config | None, out: TextIO, err: TextIO) -> int:
        """Tell of a configuration that Hydra left."""
        self._tell(iter([Recognised(body=config)] if config else []), out)
        self._sum_up("a configuration of Hydra", err)
        return 0

    def of_event_file(self, file: EventFile, out: TextIO, err: TextIO) -> int:
        """Tell of the steps in a TensorBoard file."""
        self._tell((Recognised(body=step) for steps in (file.poll(), file.rest()) for step in steps), out)
        if file.problem:
            print(f"{self._name}: {file.problem}", file=err)
            return 1
        self._sum_up("a TensorBoard file", err)
        return 0

    def _tell(self, found: Iterator[Recognised], out: TextIO) -> None:
        for one in found:
            fields = {"file": self._name, **as_fields(one)}
            self._kinds[str(fields["kind"])] += 1
            self._lacks.see(one.body)
            out.write(msgspec.json.encode(fields).decode() + "\n")
        out.flush()

    def _sum_up(self, what: str, err: TextIO) -> None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self._kinds.most_common())
        print(f"{self._name}: {what}; recognised: {kinds or 'nothing'}", file=err)


def as_fields(one: Recognised) -> dict[str, object]:
    """A recognised line as a flat mapping: kind and line first, what is not known left out."""
    body: dict[str, object] = msgspec.to_builtins(one.body)
    told = {"kind": body.pop("kind"), "line": one.line, **body}
    writer = {"pid": one.pid, "actor": one.actor, "rank": one.rank, "ip": one.ip, "run": one.run}
    repeated = {"repeated": one.repeated} if one.repeated > 1 else {}
    return {key: value for key, value in {**told, **repeated, **writer}.items() if value is not None}


class _Lacks:
    """Notices what a log does not say, of the signals that oomwatch lives on."""

    def __init__(self) -> None:
        self._steps = self._with_rollout = self._with_reshard = 0
        self._memory = self._markers = False

    def see(self, body: wire.EventBody) -> None:
        if isinstance(body, wire.Step):
            self._steps += not body.validation_only
            self._with_rollout += body.rollout_seconds is not None
            self._with_reshard += body.reshard_seconds is not None
        self._memory |= isinstance(body, wire.TorchMemory)
        self._markers |= isinstance(body, wire.Reshard)

    def sentences(self) -> Iterator[str]:
        """What is missing, and what to do about it."""
        if not self._steps:
            yield 'no step line: is this the console of a trainer (verl: trainer.logger with "console")?'
        elif not self._with_rollout:
            yield "step lines without timing_s/gen (or timing/gen): the rollout's time is not known"
        if not self._markers:
            instead = "; step lines tell its time instead" if self._with_reshard else ""
            yield f"no reshard marker: {_DEBUG}{instead}"
        if not self._memory:
            yield f"no memory line of the trainer: {_DEBUG}, or install the probe"
