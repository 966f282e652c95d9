"""What a whole agent costs: CPU and memory of the real process, watching 8 GPUs once a second.

    python -m bench.agent [--seconds 30] [--gpus 8] [--interval 1]

The agent is the real program, talking to a server in this process that acknowledges every few seconds. The GPUs are
those of the stand-in for libnvidia-ml (tests/nvml), which reads its script again at every call: a real driver answers
faster than that, except where it takes a lock. CPU is what the kernel's scheduler counted for all threads, in ns.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil
from tests.nvml.standin import GIB, ScriptedGpus, build
from websockets.asyncio.server import ServerConnection, serve

from oomwatch import wire

ROOT = Path(__file__).resolve().parents[1]
ACK_EVERY_SECONDS = 3.0
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


async def measure(options: argparse.Namespace, folder: Path) -> None:
    gpus = ScriptedGpus(folder / "gpus", build(folder), count=options.gpus)
    for index in range(options.gpus):
        gpus.set(index, used_bytes=60 * GIB, utilization_percent=90, processes=((os.getpid(), 58 * GIB),))
    server = Server()
    async with serve(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        environ = {**os.environ, **gpus.environment, "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT / 'agent'}"}
        program = [sys.executable, "-m", "oomwatch_agent", "--server", f"127.0.0.1:{port}"]
        program += ["--interval", str(options.interval), "--log-level", "warning"]
        started_at = time.monotonic()
        agent = await asyncio.create_subprocess_exec(*program, env=environ)
        try:
            while not server.frames:  # noqa: ASYNC110 - a poll is good enough to time a start
                await asyncio.sleep(0.005)
            print(f"first sample after       {time.monotonic() - started_at:.2f} s")
            await asyncio.sleep(WARM_UP_SECONDS)
            await _measure_process(agent.pid, server, options.seconds)
        finally:
            agent.send_signal(signal.SIGTERM)
            await agent.wait()


async def _measure_process(pid: int, server: Server, seconds: float) -> None:
    frames, frame_bytes = server.frames, server.frame_bytes
    before, started_at = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - started_at
    process = psutil.Process(pid)
    memory = process.memory_full_info()
    print(f"CPU                      {(cpu_seconds(pid) - before) / passed * 1000:.2f} ms a second")
    print(f"resident memory          {memory.rss / 2**20:.1f} MiB (its own, not shared: {memory.uss / 2**20:.1f} MiB)")
    print(f"threads                  {process.num_threads()}")
    print(f"messages                 {(server.frames - frames) / passed:.2f} a second")
    print(f"bytes of a message       {(server.frame_bytes - frame_bytes) / max(1, server.frames - frames):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to measure")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--interval", type=float, default=1.0, help="the agent's, in seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
