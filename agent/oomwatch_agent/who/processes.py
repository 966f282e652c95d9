"""What a process is called, which run it belongs to and which rank it has in it, read from /proc.

Reading a command line or an environment takes the process' memory lock, which blocks for as long as the process is
stuck in the kernel: the very moment this agent is for. So these reads are guarded, and a process that does not answer
is called by its short name, which needs no lock.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.kernel_files import read_bytes
from oomwatch_agent.source import Identity, KnownBy
from oomwatch_agent.who.environ import environment_in
from oomwatch_agent.who.roles import role_of

_LIMIT_SECONDS = 0.5
_NAME_LENGTH = 100
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
# Names of the replicas of Kubeflow's PyTorchJob and MPIJob.
_KUBEFLOW_POD = re.compile(r"(.+)-(?:master|worker|launcher)-\d+")
_STARTED_AFTER_NAME = 19  # starttime is field 22 of /proc/PID/stat; the first after the name's ")" is field 3


class Described(msgspec.Struct, frozen=True):
    """What is known of a process; None where it is gone, hidden or stuck."""

    name: str | None = None
    run: str | None = None
    run_by: KnownBy = KnownBy.BATCH_JOB
    rank: int | None = None
    role: str | None = None
    inner_pid: int | None = None  # within its container, where it is in one that this agent is not in


class _Given(NamedTuple):
    """What a process was started with, which stays for its life."""

    started: str  # the pid may be given again
    run: str | None
    run_by: KnownBy
    rank: int | None
    inner_pid: int | None


class Processes:
    """Looks processes up. A run is read once in a process' life (its environment stays), a name at every look: Ray
    renames its workers as they change jobs."""

    identities: tuple[Identity, ...] = ()  # of those that were named last

    def __init__(self, root: Path = Path("/"), *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        self._proc = str(root / "proc")
        self._guard: HangGuard[int, Described] = HangGuard(limit_seconds)
        self._given: dict[int, _Given] = {}

    def describe(self, pids: Iterable[int]) -> dict[int, Described]:
        """Name, run, rank and role of each process. Takes at most the time limit, however many are stuck."""
        wanted = list(dict.fromkeys(pids))
        answers = self._guard.ask(wanted, self._look)
        return {pid: answers.get(pid) or Described(self._short_name(pid)) for pid in wanted}

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Drop what is remembered of processes that are gone."""
        alive = set(pids)
        self._given = {pid: given for pid, given in self._given.items() if pid in alive}

    def named(self, samples: tuple[wire.GpuSample, ...]) -> tuple[wire.GpuSample, ...]:
        """The same samples, with what can be read here of the processes in them."""
        pids = [process.pid for sample in samples for process in sample.processes or ()]
        known = self.describe(pids)
        self.forget_all_but(pids)
        self.identities = tuple(_identity(pid, described) for pid, described in known.items())
        return tuple(_named(sample, known) for sample in samples)

    def _look(self, pid: int) -> Described:
        started = self._started(pid)
        if started is None:
            return Described()
        arguments = read_bytes(f"{self._proc}/{pid}/cmdline")
        name = display_name(arguments) if arguments else self._short_name(pid)
        given = self._given_to(pid, started)
        return Described(name, given.run, given.run_by, given.rank, role_of(name), given.inner_pid)

    def _given_to(self, pid: int, started: str) -> _Given:
        given = self._given.get(pid)
        if given is None or given.started != started:
            folder = Path(self._proc, str(pid))
            variables = environment_in(folder) or {}
            run, run_by = run_of(variables)
            given = self._given[pid] = _Given(started, run, run_by, _rank(variables), inner_pid(folder))
        return given

    def _started(self, pid: int) -> str | None:
        fields = read_bytes(f"{self._proc}/{pid}/stat").rpartition(b")")[2].split()
        return fields[_STARTED_AFTER_NAME].decode() if len(fields) > _STARTED_AFTER_NAME else None

    def _short_name(self, pid: int) -> str | None:
        return _text(read_bytes(f"{self._proc}/{pid}/comm")).strip() or None


def _named(sample: wire.GpuSample, known: dict[int, Described]) -> wire.GpuSample:
    if not sample.processes:
        return sample
    return msgspec.structs.replace(
        sample, processes=tuple(_described(process, known[process.pid]) for process in sample.processes)
    )


def _described(process: wire.GpuProcess, known: Described) -> wire.GpuProcess:
    return msgspec.structs.replace(
        process, name=known.name or process.name, run=known.run, rank=known.rank, role=known.role
    )


def _identity(pid: int, known: Described) -> Identity:
    return Identity(
        pid=pid, inner_pid=known.inner_pid, run=known.run, run_by=known.run_by, rank=known.rank, role=known.role
    )


def inner_pid(process: Path) -> int | None:
    """The id that a process has within its own container, of its folder in /proc; None where it is in none.

    "NSpid: 12345 77" of /proc/PID/status: from the one who reads to the innermost. Logs of a container say 77, the
    driver and an agent on the host say 12345.
    """
    for line in read_bytes(f"{process}/status").splitlines():
        if line.startswith(b"NSpid:"):
            numbers = line.split()[1:]
            return int(numbers[-1]) if len(numbers) > 1 and numbers[-1].isdigit() else None
    return None


def run_of(variables: Mapping[str, str]) -> tuple[str | None, KnownBy]:
    """The run that a process' environment names: oomwatch's own variable, else the job of Slurm or Kubernetes."""
    if own := variables.get("OOMWATCH_RUN"):
        return own[: wire.NAME_CHARS_MAX], KnownBy.PERSON
    job = _slurm_job(variables) or _kubernetes_job(variables)
    return job[: wire.NAME_CHARS_MAX] if job else None, KnownBy.BATCH_JOB


def _rank(variables: Mapping[str, str]) -> int | None:
    """Of torchrun, and of verl, which gives it to its workers the same way."""
    text = variables.get("RANK", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= wire.COUNT_MAX else None


def _slurm_job(variables: Mapping[str, str]) -> str | None:
    parts = (variables.get("SLURM_JOB_NAME"), variables.get("SLURM_JOB_ID"))
    return "-".join(part for part in parts if part) or None


def _kubernetes_job(variables: Mapping[str, str]) -> str | None:
    """Of a pod, by its name: those of an indexed Job are called JOB-INDEX and know their index, those of Kubeflow's
    jobs JOB-worker-INDEX. Other pods do not know their job."""
    index, host = variables.get("JOB_COMPLETION_INDEX"), variables.get("HOSTNAME", "")
    if "KUBERNETES_SERVICE_HOST" not in variables:
        return None
    if kubeflow := _KUBEFLOW_POD.fullmatch(host):
        return kubeflow[1]
    return host.removesuffix(f"-{index}") or None if index and host.endswith(f"-{index}") else None


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


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
