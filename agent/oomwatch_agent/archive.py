"""Rotated logs that were packed with gzip: read once, as what was there before. `Archive` is used where a `Tail` is."""

import gzip
import os
import zlib
from pathlib import Path

from oomwatch.oserror import in_words
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.tail import BLOCK_BYTES, Part


class Archive:
    """One packed log. It does not change any more, so that there is nothing to follow when it has been read."""

    waiting = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None  # why it cannot be read, and what to do about it
        self._file: gzip.GzipFile | None = None
        self._raw = -1
        self._splitter = LineSplitter()
        self._done = False

    @property
    def size_bytes(self) -> int:
        """The packed file's size, once it is open."""
        return os.fstat(self._raw).st_size if self._file else 0

    @property
    def behind_bytes(self) -> int:
        """How much of the packed file is still to be read."""
        return max(0, self.size_bytes - os.lseek(self._raw, 0, os.SEEK_CUR)) if self._file else 0

    @property
    def in_backlog(self) -> bool:
        """Whether there is more to come."""
        return not self._done

    @property
    def resting(self) -> bool:
        """Whether it has been read."""
        return self._done

    def poll(self, budget_bytes: int) -> list[Part]:
        """The next lines, of up to `budget_bytes` unpacked. Never raises for what may be wrong with a file."""
        parts: list[Part] = []
        try:
            while not self._done and budget_bytes > 0:
                block = self._open().read(min(budget_bytes, BLOCK_BYTES))
                budget_bytes -= len(block)
                parts.append(Part("backlog", self._splitter.feed(block) if block else self._splitter.flush()))
                if not block:
                    self.close()
        except (OSError, EOFError, zlib.error) as error:
            self.close()
            self.problem = f"cannot read {self.path.name} to its end: {in_words(error)}; is it a whole gzip file?"
        return parts

    def close(self) -> None:
        """Let the file go; there is no more to come."""
        self._done = True
        if self._file:
            self._file.close()
            os.close(self._raw)
            self._file = None

    def _open(self) -> gzip.GzipFile:
        if self._file is None:
            self._raw = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._file = gzip.GzipFile(fileobj=open(self._raw, "rb", closefd=False), mode="rb")  # noqa: SIM115 - closed by close
        return self._file
