"""A real agent, what it said, and what can be done to its machine."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import psutil
import pytest
from tests.agent.fake_server import FakeServer

from oomwatch import wire

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 90.0  # of a condition, on a machine that has other work
EXIT_SECONDS = 20.0  # to end: the agent's own limits come to some six


class Agent:
    """A running agent. Its log is in a file, so that it never waits for a reader."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def resident_mib(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20

    @property
    def cpu_seconds(self) -> float:
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def says(self, words: str) -> None:
        await until(lambda: words in self.log, f'the agent to say "{words}"')

    async def stopped(self) -> float:
        """Ask it to stop; the seconds that it took. It must end by itself, and with status 0."""
        started_at = time.monotonic()
        self.signal(signal.SIGTERM)
        assert await asyncio.wait_for(self.process.wait(), EXIT_SECONDS) == 0, self.log
        return time.monotonic() - started_at


async def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running(
    url: str, folder: Path, *argv: str, environ: Mapping[str, str] | None = None, interval: str = "0.2"
) -> AsyncIterator[Agent]:
    """An agent called n1, which is killed at the end if it still runs."""
    log = folder / "agent.log"
    fixed = ("--server", url, "--node", "n1", "--interval", interval, "--ray", "off", "--cpu-budget", "0")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OOMWATCH_")}
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "oomwatch_agent", *fixed, "--probe", str(folder / "probe.sock"), *argv),
            env={**inherited, "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT / 'agent'}", **(environ or {})},
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    try:
        yield Agent(process, log)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()


def with_server(server: FakeServer, story: Callable[[], Awaitable[None]]) -> None:
    """Run a story while a server of ours plays its part."""

    async def run() -> None:
        await server.start()
        try:
            await story()
        finally:
            await server.stop()

    asyncio.run(run())


def samples(server: FakeServer) -> list[wire.Sample]:
    return [message for message in server.heard if isinstance(message, wire.Sample)]


def with_host(server: FakeServer, after: int) -> list[wire.Sample]:
    """Those after so many that tell of the host. On a busy machine a reading may come one sample late."""
    return [sample for sample in samples(server)[after:] if sample.host is not None]


def used_bytes(server: FakeServer, gpu: str) -> int | None:
    """Of a card, as it was told last."""
    for sample in reversed(samples(server)):
        for told in sample.gpus:
            if told.gpu == gpu:
                return told.used_bytes
    return None


def statuses(server: FakeServer) -> dict[str, str]:
    """Of the GPUs, in the last sample that came."""
    came = samples(server)
    return {gpu.gpu: gpu.status for gpu in came[-1].gpus} if came else {}


def told_of(server: FakeServer, source: str) -> wire.SourceFacts | None:
    """What the agent said last of one of its sources."""
    said = hellos(server)
    return next((told for told in said[-1].facts.sources if told.name == source), None) if said else None


def hellos(server: FakeServer) -> list[wire.Hello]:
    return [message for message in server.heard if isinstance(message, wire.Hello)]


class Shim:
    """The hand on a program's clock and resolver; the program is started with `environment`."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self._orders, library = folder / "orders", folder / "shim.so"
        source = Path(__file__).with_name("shim.c")
        command = [compiler, "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]
        subprocess.run([*command, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "OOMWATCH_SHIM": str(self._orders)}
        self.set()

    def set(self, *, clock_ahead_seconds: float = 0.0, resolver_hangs: bool = False) -> None:
        fresh = self._orders.with_suffix(".new")
        fresh.write_text(f"{clock_ahead_seconds} {int(resolver_hangs)}")
        fresh.replace(self._orders)

    @property
    def has_hung(self) -> bool:
        """Whether the program has begun to look a name up in vain."""
        return self._orders.with_name(f"{self._orders.name}-hung").exists()


@pytest.fixture
def shim(tmp_path: Path, need: Callable[[str, str], str]) -> Shim:
    return Shim(tmp_path, need("gcc", "apt-get install gcc"))
