"""Following a file as it grows: bytes in, whole lines out, through rotation, truncation and whatever else befalls logs.

One `Tail` follows one path. It owns no thread: `poll` reads what has come, at most so many bytes, and returns. A file
that is renamed is read to its end before the new one is begun; one that is cut (copytruncate) is begun again, even if
it grew to the same size meanwhile; one that is not there yet, or not any more, is waited for. What is no regular file
(a folder, a pipe, a socket, a device) is left alone, with a sentence on what to name instead.
"""

import os
import stat
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from oomwatch.oserror import with_remedy
from oomwatch_agent.logs.scan import Chunk
from oomwatch_agent.logs.splitter import LineSplitter

HEAD_BYTES = 512 * 1024  # enough for a driver's printed configuration (75 KB in verl 0.9)
BLOCK_BYTES = 256 * 1024
_FINGERPRINT_BYTES = 64
_IDLE_POLLS_BEFORE_CLOSING = 60  # a handle on a deleted file keeps its disk space from being freed

Begin: TypeAlias = Literal["backlog", "live", "end"]
Stage: TypeAlias = Literal["head", "backlog", "live"]


class Part(NamedTuple):
    """Whole lines that were read together, undecoded: most of them are never looked at (`logs.scan`).

    "head": for names only; "backlog": there at first sight; "live": came since.
    """

    stage: Stage
    chunk: Chunk


class Tail:
    """Follows one path. `begin` says what the content at first sight is: "backlog", "live", or passed over ("end")."""

    def __init__(self, path: Path, begin: Begin) -> None:
        self.path = path
        self.problem: str | None = None  # why nothing can be read, and what to do about it
        self.waiting = False  # there is no such file any more
        self._begin: Begin = begin
        self._fd: int | None = None
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._size = 0
        self._backlog_end = 0
        self._numbered = True
        self._head = self._behind = b""  # the file's first bytes, and the last ones that were read
        self._written_ns = 0
        self._splitter = LineSplitter()
        self._idle_polls = 0

    @property
    def behind_bytes(self) -> int:
        """How much of the file is still to be read."""
        return max(0, self._size - self._offset)

    @property
    def size_bytes(self) -> int:
        """The file's size when it was last looked at."""
        return self._size

    @property
    def in_backlog(self) -> bool:
        """Whether content of before the first sight is still to come."""
        return self._offset < self._backlog_end

    @property
    def resting(self) -> bool:
        """Whether the file has been idle for so long that its handle was given back."""
        return self._fd is None and self._identity is not None

    def poll(self, budget_bytes: int) -> list[Part]:
        """What has come since, up to about `budget_bytes`. Never raises for what may happen to a file."""
        try:
            return self._poll(budget_bytes)
        except PermissionError:
            self._fail(f"cannot read {self.path.name}: permission denied; run the agent as a user who may read it")
        except OSError as error:
            self._fail(f"cannot read {self.path.name}: {with_remedy(error)}")
        return []

    def close(self) -> None:
        """Let the file go. The place is kept, so a later poll goes on there."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _poll(self, budget_bytes: int) -> list[Part]:
        there = self._stat()
        self.waiting = there is None and self._fd is None
        if self._fd is None and not self._open(there):
            return []
        parts = self._take_head() if self._begin == "end" else []
        parts += self._read(budget_bytes)
        if self.behind_bytes:
            return parts
        if there is not None and _identity(there) != self._identity:
            parts += self._switch(budget_bytes)
        elif not parts:
            self._rest()
        else:
            self._idle_polls = 0
        return parts

    def _stat(self) -> os.stat_result | None:
        try:
            return os.stat(self.path)  # noqa: PTH116 - one call a second and file
        except FileNotFoundError:
            return None

    def _open(self, there: os.stat_result | None) -> bool:
        """A handle on what is at the path, at the place to go on from; False where there is nothing to do."""
        if there is None or (_identity(there) == self._identity and self._is_as_it_was(there)):
            self.problem = None
            return False
        if not stat.S_ISREG(there.st_mode):
            self._fail(f"cannot follow {self.path.name}: {_what_instead(there.st_mode)}")
            return False
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self.problem, self.waiting = None, False
        seen = os.fstat(self._fd)
        if self._identity is None:
            self._size = seen.st_size
            self._backlog_end = seen.st_size if self._begin == "backlog" else 0
        elif _identity(seen) != self._identity:
            self._restart()
        self._identity = _identity(seen)
        return True

    def _is_as_it_was(self, there: os.stat_result) -> bool:
        """Whether a file that was let go is unchanged. Its size alone does not tell: it may have been written anew."""
        return there.st_size == self._offset and there.st_mtime_ns == self._written_ns

    def _restart(self) -> None:
        """Another file, or this one from its beginning: all of it is new."""
        self._offset = self._backlog_end = self._size = 0
        self._numbered = True
        self._head = self._behind = b""
        self._splitter = LineSplitter()
        self._begin = "live"

    def _take_head(self) -> list[Part]:
        """The head of a file whose content is passed over: names stand there."""
        assert self._fd is not None  # noqa: S101
        self._begin = "live"
        head = os.pread(self._fd, min(HEAD_BYTES, self._size), 0)
        self._offset = self._size
        self._head = head[:_FINGERPRINT_BYTES]
        self._behind = self._bytes_before(self._offset, _FINGERPRINT_BYTES)
        self._numbered = len(head) == self._size
        chunk = self._splitter.feed(head)
        if not self._numbered:
            self._splitter = LineSplitter()
        return [Part("head", chunk)]

    def _read(self, budget_bytes: int) -> list[Part]:
        parts: list[Part] = []
        self._notice_truncation()
        while budget_bytes > 0 and (block := self._next_block(budget_bytes)):
            budget_bytes -= len(block)
            stage: Stage = "backlog" if self._offset <= self._backlog_end else "live"
            parts.append(Part(stage, self._numbered_or_not(self._splitter.feed(block))))
        return parts

    def _numbered_or_not(self, chunk: Chunk) -> Chunk:
        return chunk if self._numbered else chunk._replace(number=0)

    def _next_block(self, most: int) -> bytes:
        """The next bytes; a block never holds both backlog and live ones."""
        assert self._fd is not None  # noqa: S101
        if self.in_backlog:
            most = min(most, self._backlog_end - self._offset)
        block = os.pread(self._fd, min(most, BLOCK_BYTES), self._offset)
        if len(self._head) < _FINGERPRINT_BYTES and self._offset == len(self._head):
            self._head += block[: _FINGERPRINT_BYTES - len(self._head)]
        self._behind = (self._behind + block[-_FINGERPRINT_BYTES:])[-_FINGERPRINT_BYTES:]
        self._offset += len(block)
        self._size = max(self._size, self._offset)
        return block

    def _notice_truncation(self) -> None:
        """Begin again where the file became shorter, or holds other bytes than those read (cut, and grown again)."""
        assert self._fd is not None  # noqa: S101
        seen = os.fstat(self._fd)
        if seen.st_size < self._offset or self._was_written_anew():
            self._restart()
        self._size, self._written_ns = seen.st_size, seen.st_mtime_ns

    def _was_written_anew(self) -> bool:
        assert self._fd is not None  # noqa: S101
        return (
            self._bytes_before(self._offset, len(self._behind)) != self._behind
            or os.pread(self._fd, len(self._head), 0) != self._head
        )

    def _bytes_before(self, offset: int, most: int) -> bytes:
        assert self._fd is not None  # noqa: S101
        begin = max(0, offset - most)
        return os.pread(self._fd, offset - begin, begin)

    def _switch(self, budget_bytes: int) -> list[Part]:
        """The old file was renamed or deleted and is read to its end: on to the new one."""
        parts = [Part("live", self._numbered_or_not(self._splitter.flush()))]
        self.close()
        if self._open(self._stat()):
            parts += self._read(budget_bytes)
        return parts

    def _rest(self) -> None:
        """Nothing came. After a while the handle is given back; the place is kept."""
        self._idle_polls += 1
        if self._idle_polls >= _IDLE_POLLS_BEFORE_CLOSING:
            self._idle_polls = 0
            self.close()

    def _fail(self, problem: str) -> None:
        self.problem = problem
        self.close()


def _identity(seen: os.stat_result) -> tuple[int, int]:
    return seen.st_dev, seen.st_ino


def _what_instead(mode: int) -> str:
    """What a path is that is no regular file, and what to give instead."""
    if stat.S_ISDIR(mode):
        return "it is a folder; name the files in it with a quoted glob, such as 'folder/*.log'"
    if stat.S_ISFIFO(mode):
        return "it is a pipe; read it as standard input: --log - < pipe"
    if stat.S_ISSOCK(mode):
        return "it is a socket; name a file, or read a program's output as standard input: program | ... --log -"
    return "it is a device; name a file, or read standard input: --log -"
