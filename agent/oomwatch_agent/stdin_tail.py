"""Standard input, read as a log is followed: what a program pipes to the agent."""

import os
import select

from oomwatch_agent.logs.scan import Chunk
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.tail import BLOCK_BYTES


class StdinTail:
    """Standard input as a source of lines: waits for nothing, and leaves the descriptor's flags alone."""

    def __init__(self, fd: int = 0) -> None:
        self.ended = False
        self._fd = fd
        self._splitter = LineSplitter()

    def poll(self, budget_bytes: int) -> list[Chunk]:
        """What has come since. At the end of the input, the last line too, whole or not."""
        found: list[Chunk] = []
        while budget_bytes > 0 and not self.ended and select.select([self._fd], [], [], 0)[0]:
            try:
                block = os.read(self._fd, min(budget_bytes, BLOCK_BYTES))
            except (BlockingIOError, InterruptedError):
                break
            self.ended = not block
            budget_bytes -= len(block)
            found.append(self._splitter.feed(block) if block else self._splitter.flush())
        return found
