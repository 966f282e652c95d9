"""Real agents, over a stand-in for NVIDIA's library, that are killed and suspended."""

import os
import signal
from pathlib import Path

from tests.acceptance.programs import Program
from tests.nvml.standin import ScriptedGpus

GIB = 2**30


class RealAgent:
    """`oomwatch-agent` on a node with one card, whose use is told."""

    def __init__(self, node: str, port: int, folder: Path, library: Path) -> None:
        self.node = node
        self._port = port
        self._folder = folder
        self._gpus = ScriptedGpus(folder / f"{node}-gpus", library, count=1)
        self.program = self._started()

    @property
    def used_gib(self) -> float:
        return self._gpus[0].used_bytes / GIB

    @used_gib.setter
    def used_gib(self, used_gib: float) -> None:
        self._gpus.set(0, used_bytes=int(used_gib * GIB))

    def kill(self) -> None:
        """What it had not sent is lost with it; what is so is told anew."""
        self.program.kill()

    def start(self) -> None:
        if not self.program.running:
            self.program = self._started()

    def pause(self) -> None:
        if self.program.running:
            os.kill(self.program.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        if self.program.running:
            os.kill(self.program.pid, signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        self._gpus.release()

    def _started(self) -> Program:
        where = ["--server", f"ws://127.0.0.1:{self._port}", "--node", self.node, "--interval", "500ms"]
        return Program(f"agent-{self.node}", ["-m", "oomwatch_agent", *where], self._folder, self._gpus.environment)
