"""Running a vendor's program (nvidia-smi, amd-smi, npu-smi) so that one that hangs costs its own reading only."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

_AFTER_KILL_SECONDS = 1.0


class Ran(NamedTuple):
    """What a run of the tool gave. `code` is None where it was killed at the time limit."""

    code: int | None
    output: str


class Tool:
    """Runs a program with a time limit. A run that cannot be ended is left behind, and nothing is run beside it."""

    def __init__(self, command: Sequence[str], limit_seconds: float) -> None:
        self.command = tuple(command)
        self._limit_seconds = limit_seconds
        self._stuck: subprocess.Popen[bytes] | None = None

    def run(self, *arguments: str) -> Ran:
        """What it printed, on either stream. Raises OSError where it cannot be started."""
        if self._stuck is not None and self._stuck.poll() is None:
            return Ran(None, "")
        self._stuck = None
        process = subprocess.Popen(  # noqa: S603 - the tool that settings name, and our own arguments
            [*self.command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=self._limit_seconds)
        except subprocess.TimeoutExpired:
            self._kill(process)
            return Ran(None, "")
        return Ran(process.returncode, output.decode("utf-8", "replace"))

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        """End it and its children: its session is a process group of its own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdout is not None:
            process.stdout.close()
        try:
            process.wait(_AFTER_KILL_SECONDS)
        except subprocess.TimeoutExpired:  # stuck in the kernel, where no signal reaches it
            self._stuck = process
