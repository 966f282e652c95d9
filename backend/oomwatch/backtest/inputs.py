"""The inputs that a person named, as sources: a file each, a series each, or several files of one run as one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from oomwatch import wire, yamltext
from oomwatch.backtest import plain_csv
from oomwatch.backtest.files import is_pipe
from oomwatch.backtest.kinds import kind_of, recognised
from oomwatch.backtest.logs import Log, check_metrics, read_log
from oomwatch.backtest.recording import Message, Recording, merged, trace_of
from oomwatch.backtest.runlog import RunLog
from oomwatch.backtest.smi_csv import read_smi
from oomwatch.backtest.source import InputError, Known, Source
from oomwatch.trace import Line, TraceError, read_trace
from oomwatch_agent.logs.config_text import config_of

_STDIN = Path("/dev/stdin")
_HYDRA = ".hydra"
_FILES_MAX = 2000  # of a folder
_FILE_KINDS = ("log", "metrics")


def sources_of(paths: Sequence[Path], known: Known, *, together: bool = False) -> list[Source]:
    """The inputs, in order; `-` is standard input. Raises InputError at the first that cannot be used."""
    paths = [_STDIN if str(path) == "-" else path for path in paths]
    if together and len(paths) > 1:
        return [_of_run(_files(paths, known), str(paths[0].parent), known)]
    return _named_apart([source for path in paths for source in _of_path(path, known)])


def _of_path(path: Path, known: Known) -> list[Source]:
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if path.is_dir():
        return [_of_run(_files([path], known), str(path), known)]
    kind = known.kind or kind_of(path)
    if kind == "trace":
        return [_of_trace(path)]
    if kind == "csv":
        return list(_of_table(path, known))
    return [_of_run([(path, kind)], str(path), known)]


def _of_trace(path: Path) -> Source:
    if is_pipe(path):
        raise InputError(f"{path}: a trace is read more than once, and has to be a file")
    first = next(_trace_lines(path), None)
    if first is None:
        raise InputError(f"{path}: an empty trace")
    # What a backtest wrote begins with the hello of its session, and nobody's silence in it means anything.
    live = not (isinstance(first.message, wire.Hello) and first.message.session == "backtest")
    return Source(name=str(path), lines=partial(_trace_lines, path), live=live)


def _trace_lines(path: Path) -> Iterator[Line]:
    try:
        yield from read_trace(path)
    except TraceError as error:
        raise InputError(str(error)) from error


def _of_table(path: Path, known: Known) -> Iterator[Source]:
    if known.capacity_bytes is None:
        raise InputError(f"{path}: how large is a card? Give --capacity, for example --capacity 48GiB")
    for name, rows in plain_csv.read_series(path).items():
        recording = plain_csv.recording_of(name, rows, known.capacity_bytes)
        yield Source(name=name, lines=partial(trace_of, recording))


def _named_apart(sources: list[Source]) -> list[Source]:
    """Inputs of the same name get a number."""
    counts = Counter(source.name for source in sources)
    seen: Counter[str] = Counter()
    apart = []
    for source in sources:
        seen[source.name] += 1
        same = counts[source.name] > 1
        apart.append(msgspec.structs.replace(source, name=f"{source.name} ({seen[source.name]})") if same else source)
    return apart


# ---------------------------------------------------------------- a run of several files


def _files(paths: Sequence[Path], known: Known) -> list[tuple[Path, str]]:
    """Files with their kinds; of folders those that are of any kind at all."""
    found: list[tuple[Path, str]] = []
    for path in paths:
        if path.is_dir():
            found += [(file, kind) for file in _within(path) if (kind := _kind_within(file))]
            if not found:
                raise InputError(f"{path}: no file in this folder is recognised as one of a run")
        else:
            found.append((path, known.kind or kind_of(path)))
    return found


def _within(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and _HYDRA not in path.parts)
    if len(files) > _FILES_MAX:
        raise InputError(f"{folder}: more than {_FILES_MAX} files; name those of one run")
    return files


def _kind_within(path: Path) -> str | None:
    """A folder may hold anything: what is not recognised is passed over."""
    return recognised(path) if path.stat().st_size else None


def _of_run(files: Sequence[tuple[Path, str]], name: str, known: Known) -> Source:
    """The files of one run as one input."""
    traces = [path for path, kind in files if kind == "trace"]
    if traces and len(files) > 1:
        raise InputError(f"{traces[0]}: a trace is an input of its own, and no part of a run's other files")
    if traces:
        return _of_trace(traces[0])
    node = Path(name).name[: wire.NAME_CHARS_MAX] or "node"
    tables = [part for path, kind in files if kind not in _FILE_KINDS for part in _table_recordings(path, kind, known)]
    logs = _logs(files)
    run_log = RunLog(logs, known, with_cards=not tables) if logs else None
    parts = [*([run_log.recording(node)] if run_log else []), *tables]
    recording = merged(parts, node) if len(parts) > 1 else parts[0]
    recording = _with_config(_renamed(recording, node), files)
    return Source(name=name, lines=partial(trace_of, recording), notes=tuple(run_log.notes) if run_log else ())


def _logs(files: Sequence[tuple[Path, str]]) -> list[Log]:
    logs = []
    for path, kind in files:
        if kind == "metrics":
            check_metrics(path)
        if kind in _FILE_KINDS:
            log = read_log(path)
            if not log.told and len(files) == 1:
                raise InputError(
                    f"{path}: nothing in this log is recognised; oomwatch-agent parse {path.name} says more"
                )
            logs.append(log)
    return [log for log in logs if log.told]


def _table_recordings(path: Path, kind: str, known: Known) -> Iterator[Recording]:
    if kind == "nvidia-smi":
        yield read_smi(path, known)
        return
    if known.capacity_bytes is None:
        raise InputError(f"{path}: how large is a card? Give --capacity, for example --capacity 48GiB")
    for place, rows in enumerate(plain_csv.read_series(path).values()):
        yield plain_csv.recording_of("", rows, known.capacity_bytes, gpu=str(place))


def _renamed(recording: Recording, node: str) -> Recording:
    return msgspec.structs.replace(recording, node=node)


def _with_config(recording: Recording, files: Sequence[tuple[Path, str]]) -> Recording:
    """The configuration that Hydra left beside the files, where no log printed it."""
    messages = recording.messages
    if any(isinstance(one, wire.Event) and isinstance(one.body, wire.Config) for one in messages) or not messages:
        return recording
    folders = dict.fromkeys(path.parent for path, _ in files)
    config = next((found for folder in folders if (found := _hydra_config(folder / _HYDRA / "config.yaml"))), None)
    if config is None:
        return recording
    at = recording.began_at if recording.began_at is not None else messages[0].at
    event: Message = wire.Event(seq=0, at=at, body=config, run=recording.run, origin=wire.Origin(source="config.yaml"))
    return msgspec.structs.replace(recording, messages=[event, *messages])


def _hydra_config(path: Path) -> wire.Config | None:
    try:
        content = yamltext.load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yamltext.YamlTextError):
        return None
    return config_of(content) if isinstance(content, dict) else None
