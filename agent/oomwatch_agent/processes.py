"""What a process is called and which run it belongs to, read from /proc.

Reading a command line or an environment takes the process' memory lock, which blocks for as long as the process is
stuck in the kernel: the very moment this agent is for. So these reads are guarded, and a process that does not answer
is called by its short name, which needs no lock.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch_agent.hang_guard import HangGuard

_LIMIT_SECONDS = 0.5
_NAME_LENGTH = 100
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_STARTED_AFTER_NAME = 19  # starttime is field 22 of /proc/PID/stat; the first after the name's ")" is field 3


class Described(msgspec.Struct, frozen=True):
    """What is known of a process; None where it is gone, hidden or stuck."""

    name: str | None = None
    run: str | None = None


class Processes:
    """Looks processes up. A run is read once in a process' life (its environment stays), a name at every look: Ray
    renames its workers as they change jobs."""

    def __init__(self, root: Path = Path("/"), *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        self._proc = root / "proc"
        self._guard: HangGuard[int, Described] = HangGuard(limit_seconds)
        self._runs: dict[int, tuple[str, str | None]] = {}  # by pid: start time (the pid may be given again), run

    def describe(self, pids: Iterable[int]) -> dict[int, Described]:
        """Name and run of each process. Takes at most the time limit, however many are stuck."""
        wanted = list(dict.fromkeys(pids))
        answers = self._guard.ask(wanted, self._look)
        return {pid: answers.get(pid) or Described(self._short_name(pid)) for pid in wanted}

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Drop what is remembered of processes that are gone."""
        alive = set(pids)
        self._runs = {pid: known for pid, known in self._runs.items() if pid in alive}

    def named(self, samples: tuple[wire.GpuSample, ...]) -> tuple[wire.GpuSample, ...]:
        """The same samples, with name and run of the processes in them as far as they can be read here."""
        pids = [process.pid for sample in samples for process in sample.processes or ()]
        known = self.describe(pids)
        self.forget_all_but(pids)
        return tuple(_named(sample, known) for sample in samples)

    def _look(self, pid: int) -> Described:
        started = self._started(pid)
        if started is None:
            return Described()
        arguments = _read(self._proc / str(pid) / "cmdline")
        name = display_name(arguments) if arguments else self._short_name(pid)
        return Described(name, self._run(pid, started))

    def _run(self, pid: int, started: str) -> str | None:
        known = self._runs.get(pid)
        if known is None or known[0] != started:
            known = self._runs[pid] = (started, run_of(environment(self._proc / str(pid))))
        return known[1]

    def _started(self, pid: int) -> str | None:
        fields = _read(self._proc / str(pid) / "stat").rpartition(b")")[2].split()
        return fields[_STARTED_AFTER_NAME].decode() if len(fields) > _STARTED_AFTER_NAME else None

    def _short_name(self, pid: int) -> str | None:
        return _text(_read(self._proc / str(pid) / "comm")).strip() or None


def _named(sample: wire.GpuSample, known: dict[int, Described]) -> wire.GpuSample:
    if not sample.processes:
        return sample
    named = (
        msgspec.structs.replace(process, name=known[process.pid].name or process.name, run=known[process.pid].run)
        for process in sample.processes
    )
    return msgspec.structs.replace(sample, processes=tuple(named))


def environment(process: Path) -> dict[str, str]:
    """What a process was started with, of a folder in /proc; empty where it may not be read."""
    pairs = (entry.partition("=") for entry in _text(_read(process / "environ")).split("\0"))
    return {name: value for name, sign, value in pairs if sign}


def run_of(variables: Mapping[str, str]) -> str | None:
    """The run that a process' environment names: oomwatch's own variable, else the job of Slurm or Kubernetes."""
    named = variables.get("OOMWATCH_RUN") or _slurm_job(variables) or _kubernetes_job(variables)
    return named[:253] if named else None  # wire.Name's length


def _slurm_job(variables: Mapping[str, str]) -> str | None:
    parts = (variables.get("SLURM_JOB_NAME"), variables.get("SLURM_JOB_ID"))
    return "-".join(part for part in parts if part) or None


def _kubernetes_job(variables: Mapping[str, str]) -> str | None:
    """The pods of an indexed Job are called JOB-INDEX, and know their index. Other pods do not know their job."""
    index, host = variables.get("JOB_COMPLETION_INDEX"), variables.get("HOSTNAME", "")
    if "KUBERNETES_SERVICE_HOST" not in variables or not index or not host.endswith(f"-{index}"):
        return None
    return host.removesuffix(f"-{index}") or None


@functools.lru_cache(maxsize=1024)
def display_name(command_line: bytes) -> str:
    """What to call a process with this command line: the program, and for Python what it runs. Never all arguments:
    they may hold secrets. A title that a process gave itself ("ray::WorkerDict.update_actor") is kept whole."""
    arguments = _text(command_line).rstrip("\0 ").split("\0")
    program = arguments[0]
    if len(arguments) == 1 and "::" in program:
        return program[:_NAME_LENGTH]
    program = program.split(" ", maxsplit=1)[0].rpartition("/")[2]
    if _PYTHON.fullmatch(program):
        program = " ".join([program, *_what_python_runs(arguments[1:])])
    return program[:_NAME_LENGTH]


def _what_python_runs(arguments: list[str]) -> list[str]:
    for number, argument in enumerate(arguments):
        if argument == "-m":
            return arguments[number : number + 2]
        if argument == "-c":
            return ["-c"]
        if not argument.startswith("-"):
            return [argument.rpartition("/")[2]]
    return []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # gone, or another user's
        return b""


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
