"""`oomwatch export` itself: what is wanted, where it goes, and how far it is."""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

import msgspec

from oomwatch.commands.export import tables
from oomwatch.commands.export.files import Write, check_parquet, csv_to, parquet_to, refuse_existing
from oomwatch.commands.export.tables import Column, Lacking, Table, Wanted
from oomwatch.commands.stored import opened
from oomwatch.options import SettingError
from oomwatch.oserror import with_place
from oomwatch.store.store import Store, StoreError
from oomwatch.store.tiers import COARSE, FINE, RAW_MS
from oomwatch.trace import Line
from oomwatch.tryout.recording import NothingChosenError, choose, first_told_at, lines_of
from oomwatch.units import counted, parse_duration

FAILED = 1
WIDTHS_MS = {None: RAW_MS, "10s": FINE.width_ms, "1m": COARSE.width_ms}
PROGRESS_SECONDS = 0.5


def run(options: argparse.Namespace) -> int:
    """Write it. Gives the exit status."""
    whats = list(dict.fromkeys(options.what))
    _check(options, whats)
    start, end = _times(options)
    try:
        with contextlib.closing(opened(options.db)) as store:
            for what in whats:
                _export(store, what, options, _wanted(store, options, start, end))
    except (StoreError, NothingChosenError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"oomwatch: {with_place(error)}", file=sys.stderr)
        return FAILED
    return 0


def _check(options: argparse.Namespace, whats: Sequence[str]) -> None:
    if options.format == "parquet":
        check_parquet()
    if options.output is None:
        if len(whats) > 1:
            raise SettingError("flag --output: name a folder, for standard output takes one table")
        if options.format == "parquet":
            raise SettingError("flag --output: name a folder, for standard output takes no Parquet")
        return
    options.output.mkdir(parents=True, exist_ok=True)
    refuse_existing([_path(options, what) for what in whats], force=options.force)


def _path(options: argparse.Namespace, what: str) -> Path:
    folder: Path = options.output
    return folder / ("trace.jsonl" if what == "trace" else f"{what}.{options.format}")


def _times(options: argparse.Namespace) -> tuple[float, float]:
    end = time.time() if options.end is None else _moment(options.end, "--to")
    if options.start is not None and options.last is not None:
        raise SettingError("flag --last: say either --last or --from")
    if options.start is not None:
        start = _moment(options.start, "--from")
    else:
        try:
            start = end - parse_duration(options.last or "24h")
        except ValueError as error:
            raise SettingError(f"flag --last: {error}") from error
    if not 0 <= start < end:
        raise SettingError("flag --from: must be before --to")
    return start, end


def _moment(text: str, flag: str) -> float:
    """Unix seconds."""
    with contextlib.suppress(ValueError):
        return float(text)
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise SettingError(f'flag {flag}: "{text}" is no moment; write for example 2026-11-30T14:00Z') from None
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()


def _wanted(store: Store, options: argparse.Namespace, start: float, end: float) -> Wanted:
    nodes = frozenset(options.node) or None
    if options.run is not None:
        of_run = frozenset(node for one in store.runs() if one.run == options.run for node in one.nodes)
        if not of_run:
            known = ", ".join(one.run for one in store.runs()[:20]) or "none"
            raise StoreError(f'the database knows of no run "{options.run}"; it knows {known}')
        nodes = of_run if nodes is None else nodes & of_run
    only = tuple(name.strip() for name in options.columns.split(",")) if options.columns else ()
    return Wanted(start, end, nodes, frozenset(options.gpu), options.run, WIDTHS_MS[options.every], only)


def _export(store: Store, what: str, options: argparse.Namespace, wanted: Wanted) -> None:
    progress = _Progress(what, wanted)
    lacking = Lacking()
    try:
        if what == "trace":
            lines = _trace(store, options, wanted)
            with _binary(options, what) as file:
                for line in lines:
                    file.write(msgspec.json.encode(line) + b"\n")
                    progress(line.now or line.advance or wanted.start)
        else:
            table = _table(store, what, wanted, lacking)
            with _writer(options, what, table.columns) as write:
                for rows in table.batches(progress):
                    write(rows)
    finally:
        progress.end()
    if lacking.hours:
        coarser = "--every 10s or --every 1m" if options.every is None else "--every 1m"
        told = f"not in it: {counted(lacking.hours, 'hour')} of GPUs or hosts, only kept more coarsely; try {coarser}"
        print(f"oomwatch: {what}: {told}", file=sys.stderr)


def _table(store: Store, what: str, wanted: Wanted, lacking: Lacking) -> Table:
    if what in ("gpus", "hosts"):
        return tables.readings(store, wanted, of_gpus=what == "gpus", lacking=lacking)
    return tables.events(store, wanted) if what == "events" else tables.transitions(store, wanted)


def _trace(store: Store, options: argparse.Namespace, wanted: Wanted) -> Iterator[Line]:
    if len(options.node) > 1 or options.gpu:
        raise SettingError("a trace is of all nodes, of one --node, or of one --run")
    chosen = choose(store, node=next(iter(options.node), None), run=options.run)
    # Moments of a trace are told from its beginning: hours before the first reading would say nothing.
    start = first_told_at(store, chosen, wanted.start, wanted.end)
    if start == wanted.end:
        raise StoreError("nothing was stored in that time; name another with --last, or with --from and --to")
    return lines_of(store, chosen, start, wanted.end)


@contextlib.contextmanager
def _writer(options: argparse.Namespace, what: str, columns: Sequence[Column]) -> Iterator[Write]:
    with contextlib.ExitStack() as stack:
        if options.output is None:
            yield stack.enter_context(csv_to(sys.stdout, columns))
        elif options.format == "csv":
            text = stack.enter_context(_path(options, what).open("w", encoding="utf-8", newline=""))
            yield stack.enter_context(csv_to(text, columns))
        else:
            yield stack.enter_context(parquet_to(stack.enter_context(_path(options, what).open("wb")), columns))


@contextlib.contextmanager
def _binary(options: argparse.Namespace, what: str) -> Iterator[BinaryIO]:
    if options.output is None:
        yield sys.stdout.buffer
        return
    with _path(options, what).open("wb") as file:
        yield file


class _Progress:
    """Tells how far it is on a terminal's last line, twice a second."""

    def __init__(self, what: str, wanted: Wanted) -> None:
        self._what, self._start, self._end = what, wanted.start, wanted.end
        self._wanted = sys.stderr.isatty()
        self._told_at = float("-inf")

    def __call__(self, at: float) -> None:
        if self._wanted and time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            share = min(1.0, (at - self._start) / (self._end - self._start))
            print(f"\r{self._what}: {share:.0%} of the time\033[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._wanted:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
