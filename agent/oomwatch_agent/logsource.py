"""`LogSource`: training logs that a person named (a file, a glob, "-" for standard input) as a source of the agent.

What was in a log before the agent came is backlog: it informs baselines and is news to nobody, but for one thing. An
out-of-memory error at the end of a log that was written minutes ago is what the agent was started for.
"""

import glob
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch_agent.archive import Archive
from oomwatch_agent.event_files import NAME as EVENT_FILE_NAME
from oomwatch_agent.event_files import EventFile
from oomwatch_agent.hydra import config_beside, is_hydra_file
from oomwatch_agent.logs.context import PhaseMemory
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.own_patterns import OwnPatterns
from oomwatch_agent.source import Found, KnownBy, Reading
from oomwatch_agent.tail import Begin, Stage, StdinTail, Tail

LogFrom: TypeAlias = Literal["auto", "start", "now"]

BUDGET_BYTES = 4 * 1024 * 1024  # a second's reading: some 0.2 s of parsing, so a huge backlog leaves time for the rest
RECENT_SECONDS = 300.0
_MOST_FILES = 1000
_SMALLEST_SHARE_BYTES = 64 * 1024


class Follower:
    """One file with its reader: lines in, findings out, and what was in the file before the agent came told apart."""

    def __init__(
        self,
        path: Path,
        log_from: LogFrom,
        *,
        is_new: bool,
        now: float,
        pid: int | None = None,
        phases: PhaseMemory | None = None,
        own: OwnPatterns | None = None,
    ) -> None:
        packed = path.suffix == ".gz" and os.path.isfile(path)  # noqa: PTH113 - False, too, where one may not look
        self.tail: Tail | Archive = Archive(path) if packed else Tail(path, "live" if is_new else _BEGIN[log_from])
        self.reader = LineReader(pid=pid, phases=phases, own=own, errors_only=path.suffix == ".err")
        # A packed log is not the end of anything: the run went on in another file.
        self._recent = not packed and not is_new and log_from == "auto" and _was_written_lately(path, now)
        self._last_words: deque[Found] = deque(maxlen=64)

    def poll(self, budget_bytes: int) -> list[Found]:
        """What the new lines say. The run in each finding is the one that the log has named, or None."""
        found: list[Found] = []
        stage: Stage = "live"
        for part in self.tail.poll(budget_bytes):
            stage = part.stage
            found += self._findings(self.reader.read(part.chunk), stage)
        if not self.tail.behind_bytes:
            found += self._findings(self.reader.flush(), stage)
        if not self.tail.in_backlog and self._last_words:
            # The log ended with these: nothing was trained since.
            found += [msgspec.structs.replace(finding, backlog=False) for finding in self._last_words]
            self._last_words.clear()
        return found

    def _findings(self, recognised: Iterator[Recognised], stage: Stage) -> Iterator[Found]:
        for one in recognised:
            if stage == "head" and not isinstance(one.body, wire.Config):
                continue
            finding = found_of(one, self.tail.path.name, backlog=stage != "live")
            if not finding.backlog or not self._recent:
                yield finding
            elif isinstance(finding.body, wire.DeviceOom | wire.HostOom):
                yield from self._hold(finding)
            else:
                if isinstance(finding.body, wire.Step):
                    yield from self._let_go()  # training went on after them
                yield finding

    def _hold(self, finding: Found) -> Iterator[Found]:
        """Keep an error of the backlog until it is clear whether it was the end."""
        if len(self._last_words) == self._last_words.maxlen:
            yield self._last_words.popleft()
        self._last_words.append(finding)

    def _let_go(self) -> Iterator[Found]:
        while self._last_words:
            yield self._last_words.popleft()


_BEGIN: dict[LogFrom, Begin] = {"auto": "backlog", "start": "live", "now": "end"}


def found_of(one: Recognised, source: str, *, backlog: bool) -> Found:
    """A recognised line as the agent's sources give it. `source` is a base name."""
    return Found(body=one.body, origin=one.origin(source), run=one.run, backlog=backlog)


class Budget:
    """Deals the bytes of one read among many files, so that none waits for a huge one."""

    def __init__(self, followers: int, budget_bytes: int = BUDGET_BYTES) -> None:
        self.share_bytes = max(_SMALLEST_SHARE_BYTES, budget_bytes // max(1, followers))


class LogSource:
    """Follows every file that `pattern` names, and those that come later. "-" is standard input."""

    def __init__(
        self,
        pattern: str,
        log_from: LogFrom,
        run: str | None,
        *,
        clock: Callable[[], float] = time.time,
        stdin_fd: int = 0,
        own: OwnPatterns | None = None,
    ) -> None:
        self._pattern = pattern
        self._log_from = log_from
        self._run = run
        self._clock = clock
        self._followers: dict[Path, Follower] = {}
        self._known: set[Path] = set()
        self._asked: set[Path] = set()  # folders that were looked into for Hydra's
        self._stdin = StdinTail(stdin_fd) if pattern == "-" else None
        self._stdin_reader = LineReader(own=own)
        self._own = own
        self._event_files: dict[Path, EventFile] = {}
        self._beside: list[Found] = []  # configurations that Hydra left beside the logs, not told yet
        self._opened = False
        self._read_once = False
        self._left_out = False
        self._facts: wire.NodeFacts | None = None

    @property
    def name(self) -> str:
        """ "log driver.log"; of a glob its last part."""
        return "log stdin" if self._stdin else f"log {Path(self._pattern).name}"[: wire.NAME_CHARS_MAX]

    def open(self) -> wire.NodeFacts:
        """Look for files. Never raises: a log that is not there yet is waited for."""
        self._find()
        self._opened = True
        self._facts = self._facts_now()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """What the logs say since the last read. Globs are looked up again at slow reads, a plain path always."""
        if self._stdin:
            found = [found_of(one, "stdin", backlog=False) for one in self._read_stdin(self._stdin)]
            return self._reading([self._named(finding, "stdin") for finding in found])
        if slow or not self._known:
            self._find()
        share = Budget(len(self._followers)).share_bytes
        read = [self._named(finding, path.stem) for path, one in self._followers.items() for finding in one.poll(share)]
        read += [self._named(finding, finding.origin.source) for finding in self._from_other_files()]
        return self._reading(read)

    def _from_other_files(self) -> Iterator[Found]:
        """What files say that are no logs of lines: configurations and TensorBoard's events."""
        yield from self._beside
        self._beside = []
        for path, file in self._event_files.items():
            for step in file.poll():
                yield Found(
                    body=step, origin=wire.Origin(source=path.name[: wire.NAME_CHARS_MAX]), backlog=not self._read_once
                )
        self._read_once = True

    def close(self) -> None:
        """Let go of all files."""
        if self._own:
            self._own.close()
        for follower in self._followers.values():
            follower.tail.close()

    def _find(self) -> None:
        """Take up files that are new since the last look."""
        if self._stdin:
            return
        for path in self._matches():
            if path in self._followers or path in self._event_files or path in self._known:
                continue
            if len(self._followers) + len(self._event_files) >= _MOST_FILES:
                self._left_out = True
                return
            self._take_up(path)

    def _take_up(self, path: Path) -> None:
        self._known.add(path)
        if path.parent not in self._asked and (config := config_beside(path)):
            self._beside.append(Found(body=config, origin=wire.Origin(source="config.yaml"), backlog=not self._opened))
        self._asked.add(path.parent)
        if is_hydra_file(path) or (path.suffix == ".gz" and self._log_from == "now"):
            return
        if EVENT_FILE_NAME.match(path.name):
            self._event_files[path] = EventFile(path)
            return
        self._followers[path] = Follower(path, self._log_from, is_new=self._opened, now=self._clock(), own=self._own)

    def _matches(self) -> Iterable[Path]:
        plain = Path(self._pattern)
        if _is_there(plain):
            return [plain]
        if not glob.has_magic(self._pattern):
            return []
        return sorted(
            Path(match)
            for match in glob.iglob(self._pattern, recursive=True)  # noqa: PTH207
            if Path(match).is_file()
        )

    def _read_stdin(self, tail: StdinTail) -> Iterator[Recognised]:
        for chunk in tail.poll(BUDGET_BYTES):
            yield from self._stdin_reader.read(chunk)
        yield from self._stdin_reader.end() if tail.ended else self._stdin_reader.flush()

    def _named(self, finding: Found, fallback: str) -> Found:
        run = self._run or finding.run
        if run is None:
            return msgspec.structs.replace(finding, run=fallback[: wire.NAME_CHARS_MAX], run_by=KnownBy.FILE)
        return msgspec.structs.replace(finding, run=run[: wire.NAME_CHARS_MAX])

    def _reading(self, found: list[Found]) -> Reading:
        facts = self._facts_now()
        changed, self._facts = facts != self._facts, facts
        return Reading(found=tuple(found), facts=facts if changed else None)

    def _facts_now(self) -> wire.NodeFacts:
        state, detail = self._state()
        return wire.NodeFacts(sources=(wire.SourceFacts(name=self.name, state=state, detail=detail),))

    def _state(self) -> tuple[wire.SourceState, str | None]:
        if self._stdin:
            return ("missing", "standard input has ended") if self._stdin.ended else ("ok", None)
        if not self._known:
            return "waiting", "no such file yet; it is followed once it appears"
        state, detail = state_of(
            [*(follower.tail for follower in self._followers.values()), *self._event_files.values()]
        )
        if detail is None and self._own and self._own.problems:
            detail = self._own.problems[0]
        if self._left_out and detail is None:
            detail = f"more than {_MOST_FILES} files match; the rest is not followed: name fewer"
        return state, detail


def state_of(tails: Sequence[Tail | Archive | EventFile]) -> tuple[wire.SourceState, str | None]:
    """State and detail of a source over several files: the first trouble, or how far a backlog has been read."""
    problem = next((tail.problem for tail in tails if tail.problem), None)
    if problem:
        return "failed", problem
    logs = [tail for tail in tails if not isinstance(tail, EventFile)]
    behind = sum(tail.behind_bytes for tail in logs)
    if behind:
        size = sum(tail.size_bytes for tail in logs)
        return "ok", f"reading backlog: {100 * (size - behind) // max(1, size)} %"
    if tails and len(logs) == len(tails) and all(tail.waiting for tail in logs):
        return "waiting", "the file is gone; it is followed again once it appears"
    return "ok", None


def _is_there(path: Path) -> bool:
    """True also where it may not be looked at: the tail then says so."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _was_written_lately(path: Path, now: float) -> bool:
    try:
        return now - path.stat().st_mtime < RECENT_SECONDS
    except OSError:
        return False
