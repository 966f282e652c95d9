"""One command of this machine, under a limit of time and of output, and no process of its group outlives it."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path

from msgspec import Struct

OUTPUT_BYTES_MAX = 2**20
_LOOK_SECONDS = 0.05
_READ_BYTES = 65536
_READS_AT_ONCE = 16  # of a flood, and then a pause: 20 MB/s is enough for what is thrown away


class Ended(Struct, frozen=True):
    """How a command ended. `status`: as of a shell, negative for a signal; None: it was killed for its time."""

    status: int | None
    seconds: float
    truncated: bool


def run(
    command: Sequence[str],
    output: Path,
    *,
    limit_seconds: float,
    stopping: threading.Event,
    stdin: Path = Path(os.devnull),
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run it to its end, or the limit's. Both its outputs go to one new file. Raises OSError where it cannot begin."""
    began_at = time.monotonic()
    with stdin.open("rb") as given, output.open("xb", buffering=0) as file:
        os.fchmod(file.fileno(), 0o600)  # the folder can be entered by other users' processes (cabinet.py)
        process = subprocess.Popen(  # noqa: S603 - the user's own, or py-spy; never a shell
            list(command),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=output.parent,
            env=environ,
            start_new_session=True,
        )
        with process:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            copy = _Copy(process.stdout.fileno(), file)
            ended = _wait(process.pid, copy, began_at + limit_seconds, stopping)
            # Its group goes with it, whether it was late or has left something behind. It is not reaped yet, so that
            # the group's number is nobody else's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            copy.some()
    return Ended(status if ended else None, time.monotonic() - began_at, copy.truncated)


def _wait(pid: int, copy: "_Copy", until: float, stopping: threading.Event) -> bool:
    """Whether it ended by itself."""
    while not stopping.is_set():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        if time.monotonic() >= until:
            return False
        if not copy.some() or not copy.arrives(_LOOK_SECONDS):
            stopping.wait(_LOOK_SECONDS)
    return False


class _Copy:
    """From the pipe to the file, up to what it may hold; the rest is read and thrown away."""

    def __init__(self, pipe: int, file: FileIO) -> None:
        os.set_blocking(pipe, False)
        self._pipe, self._file = pipe, file
        self._left = OUTPUT_BYTES_MAX
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)
        self.truncated = False

    def arrives(self, seconds: float) -> bool:
        """Whether there is more, or the end of it, within so long."""
        return bool(self._poll.poll(seconds * 1000))

    def some(self) -> bool:
        """Copy what is there. False at the end, and where it is a flood: then a pause is due."""
        for _ in range(_READS_AT_ONCE):
            try:
                content = os.read(self._pipe, _READ_BYTES)
            except BlockingIOError:
                return True
            if not content:
                return False
            self._keep(content)
        return False

    def _keep(self, content: bytes) -> None:
        try:
            kept = self._file.write(content[: self._left])
        except OSError:  # the disk is full
            kept = self._left = 0
        self._left -= kept
        self.truncated |= kept < len(content)
