"""What an agent costs that starts beside a huge log: its CPU every five seconds, and the messages that it sent by then.

    python -m bench.agent_backlog [--megabytes 200] [--dense] [--seconds 30] [--cpu-budget 1]

The log is that of bench.log_parsing: steps among what is no event, or `--dense`, steps alone.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from bench._options import parser_of
from bench.agent import ROOT, Server, cpu_seconds, running
from bench.log_parsing import QUIET_BYTES_A_STEP, RECORDED, mixed
from tests.nvml.standin import GIB, ScriptedGpus, build
from websockets.asyncio.server import serve

GPUS = 8
EVERY_SECONDS = 5.0


def write(path: Path, megabytes: int, *, dense: bool) -> None:
    pieces = mixed(RECORDED.read_bytes(), 0 if dense else QUIET_BYTES_A_STEP)
    with path.open("wb") as file:
        while file.tell() < megabytes * 1_000_000:
            file.write(next(pieces))


async def measure(options: argparse.Namespace, folder: Path) -> None:
    log = folder / "driver.log"
    write(log, options.megabytes, dense=options.dense)
    gpus = ScriptedGpus(folder / "gpus", build(folder), count=GPUS)
    for index in range(GPUS):
        gpus.set(index, used_bytes=60 * GIB)
    server = Server()
    async with serve(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        program = [sys.executable, "-m", "oomwatch_agent", "--server", f"127.0.0.1:{port}", "--log", str(log)]
        program += ["--cpu-budget", str(options.cpu_budget), "--log-level", "error"]
        environ = {**os.environ, **gpus.environment, "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT / 'agent'}"}
        async with running(program, environ, quiet=False) as pid:
            while not server.frames:  # noqa: ASYNC110 - a poll is good enough
                await asyncio.sleep(0.01)
            await _tell(pid, server, options.seconds)


async def _tell(pid: int, server: Server, seconds: float) -> None:
    used, at = cpu_seconds(pid), time.monotonic()
    for _ in range(round(seconds / EVERY_SECONDS)):
        await asyncio.sleep(EVERY_SECONDS)
        used_before, at_before, used, at = used, at, cpu_seconds(pid), time.monotonic()
        print(f"{1000 * (used - used_before) / (at - at_before):6.1f} ms of CPU a second, {server.frames} messages")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--dense", action="store_true", help="steps alone")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cpu-budget", type=float, default=1.0, help="the agent's, in percent of a core")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
