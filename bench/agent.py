"""What a whole agent costs, beside an exporter of GPU metrics: CPU and memory of both real processes, in one run.

    python -m bench.agent [--seconds 30] [--gpus 8] [--interval 1] [--alone]

The agent is the real program, talking to a server in this process that acknowledges as ours does. Beside it
runs nvitop-exporter (requirements-dev.txt), which is asked for its page once a second, as Prometheus would. Both read
the GPUs of the stand-in for libnvidia-ml (tests/nvml), which asks for its script at every call: a real driver
answers faster than that, except where it takes a lock. Functions that the stand-in lacks the exporter gives up after
its first try. CPU is what the kernel's scheduler counted for all threads, in ns.

Over the same seconds a bare Python does a small piece of work after each second of rest (bench.resting), so that the
report says what this machine makes of resting: an agent rests between its looks.
"""

import argparse
import asyncio
import contextlib
import http.client
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from bench._options import parser_of
from tests.nvml.standin import GIB, ScriptedGpus, build
from tests.ports import free_port
from websockets.asyncio.server import ServerConnection, serve

from oomwatch import wire

ROOT = Path(__file__).resolve().parents[1]
ACK_EVERY_SECONDS = 10.0  # the server's --flush-interval
SCRAPE_SECONDS = 1.0
WARM_UP_SECONDS = 12.0  # past the start, and past the first slow read after it


class Server:
    """Welcomes, counts and acknowledges."""

    def __init__(self) -> None:
        self.frames = 0
        self.frame_bytes = 0
        self.last_seq = 0

    async def serve(self, connection: ServerConnection) -> None:
        welcome = wire.Welcome(protocol=wire.PROTOCOL_VERSION, server_version="bench", sent_at=time.time())
        acknowledging = asyncio.create_task(self._acknowledge(connection))
        welcomed = False
        async for frame in connection:
            message = wire.decode_agent(frame)
            if isinstance(message, wire.Hello):
                if not welcomed:
                    await connection.send(wire.encode(welcome).decode())
                welcomed = True
                continue
            self.frames += 1
            self.frame_bytes += len(frame)
            self.last_seq = getattr(message, "seq", None) or self.last_seq
            if isinstance(message, wire.Bye):
                await connection.send(wire.encode(wire.Ack(seq=self.last_seq)).decode())
                break
        acknowledging.cancel()

    async def _acknowledge(self, connection: ServerConnection) -> None:
        while True:
            await asyncio.sleep(ACK_EVERY_SECONDS)
            await connection.send(wire.encode(wire.Ack(seq=self.last_seq)).decode())


def cpu_seconds(pid: int) -> float:
    """CPU that all threads of a process have used, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Cost(NamedTuple):
    """Of a process, over a time."""

    cpu_ms_a_second: float
    rss_mib: float
    own_mib: float
    threads: int


class Meter:
    """Measures a process from when it is made."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._cpu_seconds, self._started_at = cpu_seconds(pid), time.monotonic()

    def read(self) -> Cost:
        passed = time.monotonic() - self._started_at
        used = cpu_seconds(self._process.pid) - self._cpu_seconds
        memory = self._process.memory_full_info()
        return Cost(used / passed * 1000, memory.rss / 2**20, memory.uss / 2**20, self._process.num_threads())


@contextlib.asynccontextmanager
async def running(program: Sequence[str], environ: Mapping[str, str], *, quiet: bool) -> AsyncIterator[int]:
    """A program's process id; it is stopped at the end."""
    silence = asyncio.subprocess.DEVNULL if quiet else None
    process = await asyncio.create_subprocess_exec(*program, env=environ, stdout=silence, stderr=silence)
    try:
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await process.wait()


@contextlib.asynccontextmanager
async def agent(server: Server, options: argparse.Namespace, gpus: ScriptedGpus) -> AsyncIterator[int]:
    """The agent, once its first sample has come."""
    async with serve(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        environ = {**os.environ, **gpus.environment, "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT / 'agent'}"}
        program = [sys.executable, "-m", "oomwatch_agent", "--server", f"127.0.0.1:{port}"]
        program += ["--interval", str(options.interval), "--log-level", "warning"]
        started_at = time.monotonic()
        async with running(program, environ, quiet=False) as pid:
            while not server.frames:  # noqa: ASYNC110 - a poll is good enough to time a start
                await asyncio.sleep(0.005)
            print(f"first sample after       {time.monotonic() - started_at:.2f} s")
            yield pid


@contextlib.asynccontextmanager
async def exporter(gpus: ScriptedGpus) -> AsyncIterator[int]:
    """nvitop-exporter, asked once a second."""
    port = free_port()
    program = [str(Path(sys.executable).with_name("nvitop-exporter")), "--port", str(port), "--interval", "1"]
    async with running(program, {**os.environ, **gpus.environment}, quiet=True) as pid:
        scraping = asyncio.create_task(_scrape(port))
        try:
            yield pid
        finally:
            scraping.cancel()
            await asyncio.gather(scraping, return_exceptions=True)


@contextlib.asynccontextmanager
async def resting(turns: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """The control; it says what it found once it has rested so many times."""
    program = [sys.executable, "-m", "bench.resting", "--turns", str(turns)]
    control = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    try:
        yield control
    finally:
        if control.returncode is None:
            control.kill()
            await control.wait()


async def _scrape(port: int) -> None:
    """Ask for the page each second, with a new connection only where there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    while True:
        await asyncio.sleep(SCRAPE_SECONDS)
        try:
            await asyncio.to_thread(_fetch, connection)
        except (OSError, http.client.HTTPException):  # it is starting, or takes one request a connection
            connection.close()


def _fetch(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", "/metrics")
    if b"gpu_memory_used" not in connection.getresponse().read():
        print("the exporter shows no GPU: its figures say nothing", file=sys.stderr)


async def measure(options: argparse.Namespace, folder: Path) -> None:
    gpus = ScriptedGpus(folder / "gpus", build(folder), count=options.gpus)
    for index in range(options.gpus):
        gpus.set(index, used_bytes=60 * GIB, utilization_percent=90, processes=((os.getpid(), 58 * GIB),))
    server = Server()
    async with contextlib.AsyncExitStack() as programs:
        pids = {"agent": await programs.enter_async_context(agent(server, options, gpus))}
        if not options.alone:
            pids["nvitop-exporter"] = await programs.enter_async_context(exporter(gpus))
        await asyncio.sleep(WARM_UP_SECONDS)
        frames, frame_bytes, started_at = server.frames, server.frame_bytes, time.monotonic()
        control = await programs.enter_async_context(resting(round(options.seconds)))
        meters = {name: Meter(pid) for name, pid in pids.items()}
        await asyncio.sleep(options.seconds)
        for name, meter in meters.items():
            _print(name, meter.read())
        passed = time.monotonic() - started_at
        print(f"messages                 {(server.frames - frames) / passed:.2f} a second")
        print(f"bytes of a message       {(server.frame_bytes - frame_bytes) / max(1, server.frames - frames):.0f}")
        told, _ = await control.communicate()
        print(told.decode().strip())


def _print(name: str, cost: Cost) -> None:
    memory = f"{cost.rss_mib:.1f} MiB resident (its own, not shared: {cost.own_mib:.1f})"
    print(f"{name:24} {cost.cpu_ms_a_second:.2f} ms of CPU a second, {memory}, {cost.threads} threads")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to measure")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--interval", type=float, default=1.0, help="the agent's, in seconds")
    parser.add_argument("--alone", action="store_true", help="without the exporter beside it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
