"""`RaySource`: the logs that Ray keeps on this node, one pair of files for every worker process.

`<session>/logs/worker-<id>-<job>-<pid>.{out,err}` hold what a worker printed, uncoloured, complete and at once, where
the driver's log has it coloured, folded and late. Their first lines are `:job_id:` and `:actor_name:`; the job in the
file's name may be ffffffff for a process that was started before it had one.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from oomwatch import wire
from oomwatch.units import counted
from oomwatch_agent.own_patterns import OwnPatterns
from oomwatch_agent.purse import Purse
from oomwatch_agent.ray_jobs import Job, JobNames
from oomwatch_agent.raylets import USUAL_PLACE, RayletSessions, usual_places
from oomwatch_agent.source import Found, Identity, KnownBy, Reading, SourceMissingError
from oomwatch_agent.who.roles import role_of

# What reads logs is loaded where there are any: it is a MiB of memory, and most nodes have no session.
if TYPE_CHECKING:
    from oomwatch_agent.follower import Follower, LogFrom, Readers
    from oomwatch_agent.logs.context import PhaseMemory
    from oomwatch_agent.run_files import RunFiles

_WORKER = re.compile(r"worker-[0-9a-f]{8,64}-(?P<job>[0-9a-f]{8})-(?P<pid>\d{1,10})\.(?:out|err)$")
_DAEMONS = ("raylet.out", "raylet.err")  # they tell of workers killed for memory, and of a full disk
_NO_JOB = "ffffffff"
_MOST_FILES = 2000
_ALIVE_SECONDS = 3600.0


class RaySource:
    """Follows a Ray session's log folder, and the next session when that begins.

    `mode`: "auto" finds the sessions of this node, otherwise it is a folder: a session, its logs, a temporary folder
    of Ray, or any folder with worker files. ("off" means: do not make a RaySource.)
    """

    def __init__(
        self,
        mode: str,
        log_from: "LogFrom",
        run: str | None,
        *,
        environ: Mapping[str, str] = os.environ,
        sessions: Callable[[], Iterable[Path]] | None = None,
        clock: Callable[[], float] = time.time,
        usual_place: Path = USUAL_PLACE,
        most_files: int = _MOST_FILES,
        own: OwnPatterns | None = None,
        run_files: "RunFiles | None" = None,
        purse: Purse | None = None,
    ) -> None:
        self._mode = mode
        self._log_from = log_from
        self._run = run
        self._environ = environ
        self._sessions = sessions or RayletSessions()
        self._clock = clock
        self._usual_place = usual_place
        self._most_files = most_files
        self._own = own
        self._run_files = run_files  # made when they are wanted
        self._purse = purse
        self._readers: Readers | None = None  # made when there are logs
        self._told: list[tuple[_File, Found]] = []  # configurations, not told yet
        self._files: dict[Path, _File] = {}
        self._known: set[Path] = set()  # whatever was taken up once is not begun again
        self._phases: dict[Path, PhaseMemory] = {}
        self._jobs = JobNames()
        self._looked = False  # what appears after the first look is news from its first line
        self._facts: wire.NodeFacts | None = None

    @property
    def name(self) -> str:
        """ "ray"."""
        return "ray"

    def open(self) -> wire.NodeFacts:
        """Look for a session. Raises SourceMissingError where there is none (yet)."""
        folders = self._folders()
        self._take_up(folders)
        self._looked = True
        if not folders:
            raise SourceMissingError(self._why_nothing())
        self._facts = self._facts_now()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """What the workers printed since the last read."""
        # Listing a folder is cheap; asking for running raylets walks over all processes.
        self._take_up(self._folders() if slow else list(self._phases))
        if slow:
            self._look_at_processes()
        files = list(self._files.values())
        read = [(files[place], finding) for place, finding in self._poll([file.follower for file in files])]
        read += self._told
        self._told = []
        self._learn_runs()
        facts = self._facts_now()
        changed, self._facts = facts != self._facts, facts
        found = (*self._jobs.news(self._clock()), *(self._named(file, finding) for file, finding in read))
        return Reading(found=found, identities=tuple(self._identities()), facts=facts if changed else None)

    def _poll(self, followers: "Sequence[Follower]") -> Iterator[tuple[int, Found]]:
        from oomwatch_agent.follower import Readers  # noqa: PLC0415 - memory

        if self._readers is None:
            self._readers = Readers(self._purse)
        return self._readers.poll(followers)

    def close(self) -> None:
        """Let go of all files."""
        if self._own:
            self._own.close()
        for file in self._files.values():
            file.follower.tail.close()

    def _look_at_processes(self) -> None:
        """Files that a worker's environment or working folder tells of: its metrics as JSON, its configuration."""
        from oomwatch_agent.follower import Follower  # noqa: PLC0415 - memory
        from oomwatch_agent.run_files import RunFiles  # noqa: PLC0415 - memory

        if self._run_files is None:
            self._run_files = RunFiles()
        for file in list(self._files.values()):
            if file.pid is None or file.asked or not file.follower.reader.run:
                continue
            file.asked = True  # once it has named its run it is the driver, and its environment does not change
            if config := self._run_files.config_of(file.pid):
                origin = wire.Origin(source="config.yaml", pid=file.pid)
                self._told.append((file, Found(body=config, origin=origin, backlog=True)))
            path = self._run_files.metrics_of(file.pid)
            if path is not None and path not in self._known:
                follower = Follower(path, self._log_from, is_new=False, now=self._clock(), pid=file.pid)
                self._known.add(path)
                self._files[path] = _File(file.folder, file.job, follower)

    def _folders(self) -> list[Path]:
        """The folders with logs, each once, however many names lead to it."""
        auto = self._mode == "auto"
        candidates = [*self._sessions(), *self._usual_sessions()] if auto else [Path(self._mode)]
        found = (logs for candidate in candidates if (logs := logs_folder(candidate)) is not None)
        return list(dict.fromkeys(found))

    def _usual_sessions(self) -> Iterator[Path]:
        latest = (place / "session_latest" for place in usual_places(self._environ, self._usual_place))
        return (session for session in latest if self._is_alive(session))

    def _is_alive(self, session: Path) -> bool:
        """Whether anything was written there lately: a machine keeps the folders of sessions that ended long ago.

        Ray writes debug_state.txt there every ten seconds; the raylet itself may be hidden in another container.
        """
        try:
            newest = max((entry.stat().st_mtime for entry in os.scandir(session / "logs")), default=0.0)
        except OSError:
            return False
        return self._clock() - newest < _ALIVE_SECONDS

    def _take_up(self, folders: Iterable[Path]) -> None:
        """Follow the files that are new since the last look."""
        folders = list(folders)
        if not folders:
            return
        from oomwatch_agent.follower import Follower  # noqa: PLC0415 - memory
        from oomwatch_agent.logs.context import PhaseMemory  # noqa: PLC0415 - memory

        for folder in folders:
            phases = self._phases.setdefault(folder, PhaseMemory())
            new = [file for file in log_files(folder) if file[0] not in self._known]
            if len(self._files) + len(new) > self._most_files:
                self._make_room(len(new))
                room = max(0, self._most_files - len(self._files))
                new = sorted(new, key=lambda file: _written_at(file[0]), reverse=True)[:room]
            for path, job, pid in new:
                follower = Follower(
                    path, self._log_from, is_new=self._looked, now=self._clock(), pid=pid, phases=phases, own=self._own
                )
                self._known.add(path)
                self._files[path] = _File(folder, job, follower, pid)

    def _make_room(self, wanted: int) -> None:
        """Give up files of processes that are long done, the oldest first."""
        resting = [path for path, file in self._files.items() if file.follower.tail.resting]
        for path in resting[: max(0, len(self._files) + wanted - self._most_files)]:
            del self._files[path]

    def _learn_runs(self) -> None:
        """A run's name stands in the file of its TaskRunner and holds for every worker of the same Ray job."""
        for file in self._files.values():
            if file.job is None:
                continue
            job = Job(_session_name(file.folder), file.job)
            self._jobs.see(job)
            if run := self._run or file.follower.reader.run:
                self._jobs.learn(job, run[: wire.NAME_CHARS_MAX])

    def _named(self, file: "_File", finding: Found) -> Found:
        """With the run: as said by --run, by the file, by the job's TaskRunner, or else what stands for the job."""
        run, run_by = self._jobs.name(_session_name(file.folder), file.job)
        if own := self._run or finding.run:
            run, run_by = own[: wire.NAME_CHARS_MAX], KnownBy.LOG
        return msgspec.structs.replace(finding, run=run, run_by=run_by)

    def _identities(self) -> Iterator[Identity]:
        """Of the workers whose job, name or actor is new."""
        for file in self._files.values():
            if file.pid is None or file.job is None:
                continue
            run, run_by = self._jobs.name(_session_name(file.folder), file.job)
            identity = Identity(pid=file.pid, run=run, run_by=run_by, role=role_of(file.follower.reader.actor))
            if identity != file.identity:
                file.identity = identity
                yield identity

    def _facts_now(self) -> wire.NodeFacts:
        from oomwatch_agent.follower import state_of  # noqa: PLC0415 - memory

        state, detail = state_of(
            [file.follower.tail for file in self._files.values()],
            held_back=self._readers is not None and self._readers.is_held_back,
        )
        if not self._files:
            state, detail = "waiting", "the session has no workers yet"
        elif detail is None:
            sessions = ", ".join(sorted({_session_name(file.folder) for file in self._files.values()}))
            detail = f"{counted(len(self._files), 'file')} of {sessions}"
        return wire.NodeFacts(
            sources=(wire.SourceFacts(name=self.name, state=state, detail=detail and detail[: wire.TEXT_CHARS_MAX]),)
        )

    def _why_nothing(self) -> str:
        if self._mode == "auto":
            return "no Ray session on this node; where its folder is elsewhere, name it with --ray DIR"
        return f"no Ray logs in {self._mode}: --ray wants a session's folder, or one with worker-*.out and .err files"


class _File:
    """One followed file, the folder it is in, and the Ray job and process that it belongs to."""

    def __init__(self, folder: Path, job: str | None, follower: "Follower", pid: int | None = None) -> None:
        self.folder = folder
        self.follower = follower
        self.pid = pid
        self.identity: Identity | None = None  # of its process, as told last
        self.asked = False  # whether its process was looked at for files of the run
        self._job = job

    @property
    def job(self) -> str | None:
        """From the file's first line, else from its name."""
        return self.follower.reader.job or self._job


def logs_folder(given: Path) -> Path | None:
    """The folder with worker files that `given` means: itself, its logs, or those of its latest session."""
    candidates = (given / "logs", given / "session_latest" / "logs", given)
    return next((folder.resolve() for folder in candidates if _holds_logs(folder)), None)


def _holds_logs(folder: Path) -> bool:
    try:
        return folder.is_dir() and (folder.name == "logs" or any(log_files(folder)))
    except OSError:  # may not be looked into
        return False


def log_files(folder: Path) -> Iterator[tuple[Path, str | None, int | None]]:
    """Path, job and pid of every file that is followed."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are enough, and there may be thousands
    except OSError:
        return
    for name in names:
        if match := _WORKER.match(name):
            job = match["job"]
            yield folder / name, None if job == _NO_JOB else job, int(match["pid"])
        elif name in _DAEMONS:
            yield folder / name, None, None


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _session_name(folder: Path) -> str:
    return (folder.parent.name if folder.name == "logs" else folder.name) or "ray"
