"""Which GPUs are full: a load program fills GPUs up when it is told to, and says when each was."""

import asyncio
import sys
import time
from typing import NamedTuple

import msgspec
from bench.compare.readings import ALL_FULL, GPUS, NONE_FULL, node_name

GOLDEN = 0.618034  # they fall on every moment of the second alike
STRIDE = 37  # of the nodes, one after the other


class Fill(NamedTuple):
    """One line of what a load program says. The moment is monotonic: the same for all programs of a machine."""

    node: str
    gpu: str
    at: float


class Filling:
    """Obeys "fill SECONDS" (a GPU a second, of one node after another) and "fill all" on standard input."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._full: dict[int, frozenset[int]] = {}
        self._rest = NONE_FULL

    def of(self, node: int) -> frozenset[int]:
        """The GPUs of this node that are full."""
        return self._full.get(node, self._rest)

    async def obey(self) -> None:
        """Say that all is ready, and go on until the program that started us ends."""
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            if line.split() == ["fill", "all"]:
                self._full, self._rest = {}, ALL_FULL
                _say(Fill("", "", time.monotonic()))
            elif line.startswith("fill "):
                await self._fill(int(line.split()[1]))

    async def _fill(self, seconds: int) -> None:
        for number in range(min(seconds, self._nodes * GPUS)):
            wait = number * GOLDEN % 1
            await asyncio.sleep(wait)
            node, gpu = number * STRIDE % self._nodes, number // self._nodes % GPUS
            self._full[node] = self._full.get(node, NONE_FULL) | {gpu}
            _say(Fill(node_name(node), str(gpu), time.monotonic()))
            await asyncio.sleep(1 - wait)


def _say(fill: Fill) -> None:
    print(msgspec.json.encode(fill).decode(), flush=True)
