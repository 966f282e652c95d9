"""`LogSource`: training logs that a person named (a file, a glob, "-" for standard input) as a source of the agent.

What was in a log before the agent came is backlog: it informs baselines and is news to nobody, but for one thing. An
out-of-memory error at the end of a log that was written minutes ago is what the agent was started for.
"""

import glob
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch_agent.event_files import NAME as EVENT_FILE_NAME
from oomwatch_agent.event_files import EventFile
from oomwatch_agent.follower import BUDGET_BYTES, Follower, LogFrom, Readers, found_of, state_of
from oomwatch_agent.hydra import config_beside, is_hydra_file
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.own_patterns import OwnPatterns
from oomwatch_agent.purse import Purse
from oomwatch_agent.source import Found, KnownBy, Reading
from oomwatch_agent.stdin_tail import StdinTail

_MOST_FILES = 1000


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
        purse: Purse | None = None,
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
        self._readers = Readers(purse)
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
        paths = list(self._followers)
        polled = self._readers.poll(list(self._followers.values()))
        read = [self._named(finding, paths[place].stem) for place, finding in polled]
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
            [*(follower.tail for follower in self._followers.values()), *self._event_files.values()],
            held_back=self._readers.is_held_back,
        )
        if detail is None and self._own and self._own.problems:
            detail = self._own.problems[0]
        if self._left_out and detail is None:
            detail = f"more than {_MOST_FILES} files match; the rest is not followed: name fewer"
        return state, detail


def _is_there(path: Path) -> bool:
    """True also where it may not be looked at: the tail then says so."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True
