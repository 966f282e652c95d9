"""Programs with the probe inside: real processes, with a stand-in for torch, that talk to an agent's real source."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from oomwatch import wire
from oomwatch_agent.probe.source import ProbeSource
from oomwatch_agent.source import Found

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "agent"
STANDIN = ROOT / "tests/probe/standin"
SITE = AGENT / "oomwatch_probe/site"
DEADLINE_SECONDS = 60.0
GIB = 1024**3
UUID = "7f3c9a10-1111-2222-3333-444455556666"

# The probe at its own pace would make every test take seconds.
FASTER = "import oomwatch_probe.sampling\noomwatch_probe.sampling.INTERVAL_SECONDS = 0.02\n"
CUDA_IN_USE = f"""
import torch.cuda
torch.cuda.devices[:] = [torch.cuda.fill(reserved=3 * 2**30, allocated=2 * 2**30, retries=4)]
torch.cuda.uuids[0] = "{UUID}"
torch.cuda.init()
"""
UNTIL_END_OF_INPUT = "import sys; sys.stdin.read()\n"


def environment(**more: str) -> dict[str, str]:
    """What a program is started with: no coverage tool, no settings of oomwatch from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OOMWATCH_", "PYTHON", "VERL_"))}
    kept["PYTHONPATH"] = f"{STANDIN}:{AGENT}"
    return {**kept, **more}


class Guest:
    """A program that runs until its standard input ends."""

    def __init__(self, code: str, environ: dict[str, str], *options: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, *options, "-c", textwrap.dedent(code)],
            env=environ,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self) -> str:
        """Its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[int, str, str]:
        """Exit status, the rest of its output, and what it wrote to its standard error."""
        out, err = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, out, err


@contextmanager
def guest(code: str, *options: str, **environ: str) -> Iterator[Guest]:
    """A program with the probe at a fast pace; ended at the end of the block."""
    running = Guest(code, environment(**environ), *options)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


class Ear:
    """An agent's source, and what it has heard."""

    def __init__(self, path: Path) -> None:
        self.source = self._make(path)
        self.source.open()
        self.found: list[Found] = []
        self.torch: tuple[wire.TorchSample, ...] = ()
        self.told: wire.SourceFacts | None = None

    def _make(self, path: Path) -> ProbeSource:
        return ProbeSource(str(path))

    def listen(self) -> None:
        reading = self.source.read(slow=False)
        self.found += reading.found
        self.torch = reading.torch
        if reading.facts is not None:
            (self.told,) = reading.facts.sources

    def until(self, condition: Callable[["Ear"], bool]) -> None:
        """Read until a condition holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            self.listen()
            if condition(self):
                return
            time.sleep(0.01)
        raise AssertionError(f"it never came to that: {self.torch}, {self.found}, {self.told}")

    def hears(self, pid: int) -> wire.TorchSample:
        """The first sample of a process."""
        self.until(lambda ear: any(sample.pid == pid for sample in ear.torch))
        return next(sample for sample in self.torch if sample.pid == pid)

    def probe_of(self, pid: int) -> wire.Probe:
        """How a process introduced itself."""
        (body,) = [found.body for found in self.found if found.origin.pid == pid]
        assert isinstance(body, wire.Probe)
        return body
