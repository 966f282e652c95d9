"""Programs that run beside us: what they say line by line, and what they take of the machine."""

import argparse
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 300.0
MIB = 2**20


def add_server_python(parser: argparse.ArgumentParser) -> None:
    """--server-python, by which a server is measured as people have it."""
    parser.add_argument(
        "--server-python",
        metavar="PATH",
        help="of an environment without the packages for development; httpx loads one of those, 4 MiB",
    )


class Helper:
    """A program of this folder: says "ready", then lines; ends with us."""

    def __init__(self, module: str, *arguments: str) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"bench.compare.{module}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._is_ready = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == "ready\n":
                self._is_ready.set()
            else:
                self.lines.append(line)

    def wait(self) -> None:
        """Until it is ready."""
        assert self._is_ready.wait(READY_SECONDS), f"{self._process.args!r} was not ready in time"

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._process.pid)

    def end(self) -> None:
        """At once."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def helping(module: str, *arguments: str) -> Iterator[Helper]:
    """A helper that ends with the block, once it is ready."""
    helper = Helper(module, *arguments)
    try:
        helper.wait()
        yield helper
    finally:
        helper.end()


class Taken(NamedTuple):
    """What processes took of the machine."""

    cores: float  # CPU seconds a second
    rss_mib: float  # the most at any moment


@contextlib.contextmanager
def sampling_rss(processes: Sequence[psutil.Process]) -> Iterator[Callable[[], float]]:
    """The most MiB that these had together so far, looked at twice a second."""
    most, over = [_rss(processes)], threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            with contextlib.suppress(psutil.NoSuchProcess):
                most[0] = max(most[0], _rss(processes))

    threading.Thread(target=look, daemon=True).start()
    try:
        yield lambda: most[0]
    finally:
        over.set()


def taken(processes: Sequence[psutil.Process], meanwhile: Callable[[], None]) -> Taken:
    """What these take while something happens."""
    with sampling_rss(processes) as most_mib:
        before, began = cpu_seconds(processes), time.monotonic()
        meanwhile()
        spent, passed = cpu_seconds(processes) - before, time.monotonic() - began
        return Taken(spent / passed, most_mib())


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    """User and system time of all their threads."""
    return sum(times.user + times.system for times in (one.cpu_times() for one in processes))


def _rss(processes: Sequence[psutil.Process]) -> float:
    return sum(one.memory_info().rss for one in processes) / MIB
