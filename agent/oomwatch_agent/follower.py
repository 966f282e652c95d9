"""`Follower`: one log with its reader, and what several of them share: the budget of a read, and a source's state."""

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch_agent.archive import Archive
from oomwatch_agent.event_files import EventFile
from oomwatch_agent.logs.context import PhaseMemory
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.model_files import with_models
from oomwatch_agent.own_patterns import OwnPatterns
from oomwatch_agent.purse import Purse, Spender
from oomwatch_agent.source import Found
from oomwatch_agent.tail import Begin, Stage, Tail

LogFrom: TypeAlias = Literal["auto", "start", "now"]

BUDGET_BYTES = 4 * 1024 * 1024  # of one reading, whatever it costs: what is found in it is kept until it is sent
HELPING_BYTES = 64 * 1024  # between two looks into the purse: 1 ms of usual log, and 10 of one that is all steps
NO_LIMIT = Purse(0.0, cpu=time.process_time, clock=time.monotonic)
RECENT_SECONDS = 300.0


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

    @property
    def has_more(self) -> bool:
        """Whether something was left for the next helping."""
        return self.tail.behind_bytes > 0 or self.tail.in_backlog

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
    body = with_models(one.body, one.models) if isinstance(one.body, wire.Config) else one.body
    return Found(body=body, origin=one.origin(source), run=one.run, backlog=backlog)


class Readers:
    """The logs of one source, read within one budget, helping by helping, so that none waits for a huge one."""

    def __init__(self, purse: Purse | None = None) -> None:
        self._spender = Spender(purse or NO_LIMIT)
        self._first = {False: 0, True: 0}  # of new lines and of old: the place whose turn it was when CPU ran out

    @property
    def is_held_back(self) -> bool:
        """Whether old lines had to wait for want of CPU."""
        return self._spender.is_held_back

    def poll(self, followers: Sequence[Follower]) -> Iterator[tuple[int, Found]]:
        """What new lines say, and then old ones, each with its follower's place. Between followers is no order."""
        self._spender.begin()
        for old in (False, True):
            yield from self._in_turn(followers, old)

    def _in_turn(self, followers: Sequence[Follower], old: bool) -> Iterator[tuple[int, Found]]:
        """A helping each, and another of who has more, beginning with who had to wait last time."""
        count, first = len(followers), self._first[old]
        turns = [place % count for place in range(first, first + count)]
        turns = [place for place in turns if followers[place].tail.in_backlog is old]
        for _ in range(max(1, BUDGET_BYTES // HELPING_BYTES // max(1, count))):
            for place in turns:
                if not self._spender.allows(old=old):
                    self._first[old] = place
                    return
                yield from ((place, found) for found in followers[place].poll(HELPING_BYTES))
            turns = [place for place in turns if followers[place].has_more and followers[place].tail.in_backlog is old]


def state_of(
    tails: Sequence[Tail | Archive | EventFile], *, held_back: bool = False
) -> tuple[wire.SourceState, str | None]:
    """State and detail of a source over several files: the first trouble, or how far a backlog has been read.

    `held_back`: it is read no faster than the CPU budget allows.
    """
    problem = next((tail.problem for tail in tails if tail.problem), None)
    if problem:
        return "failed", problem
    logs = [tail for tail in tails if not isinstance(tail, EventFile)]
    behind = sum(tail.behind_bytes for tail in logs)
    if behind:
        size = sum(tail.size_bytes for tail in logs)
        done = f"{100 * (size - behind) // max(1, size)} %"
        if not any(tail.in_backlog for tail in logs):
            return "ok", f"{_megabytes(behind)} behind: more is written than can be read"
        if held_back:
            done += f", {_megabytes(behind)} to go, as fast as the CPU budget allows (--cpu-budget)"
        return "ok", f"reading backlog: {done}"
    if tails and len(logs) == len(tails) and all(tail.waiting for tail in logs):
        return "waiting", "the file is gone; it is followed again once it appears"
    return "ok", None


def _megabytes(count: int) -> str:
    """To two digits: what a source says of itself is sent and logged whenever it changes."""
    whole = max(1, round(count / 1e6))
    return f"{round(whole, min(0, 2 - len(str(whole)))):,} MB"


def _was_written_lately(path: Path, now: float) -> bool:
    try:
        return now - path.stat().st_mtime < RECENT_SECONDS
    except OSError:
        return False
