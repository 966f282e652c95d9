"""What a server costs and how quick it is: 128 simulated agents with 1,024 GPUs, 50 browsers, a webhook.

    python bench/server.py [--seconds 20] [--agents 128] [--browsers 50]

Starts `oomwatch serve` as a process of its own. Every agent sends one sample a second of a realistic size (processes
included); now and then a GPU fills up, and the time from that sample to the webhook and to each browser is taken.
The sampling itself adds half an interval on average: 0.5 s at one sample a second.
"""

import argparse
import asyncio
import contextlib
import http.server
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec
import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from oomwatch import wire

GIB = 2**30
GPUS = 8
STEP_EVERY_SECONDS = 1.0
SETTLE_SECONDS = 5.0
RULES = """
notify:
  group_interval: 0s
  channels:
    - {{kind: webhook, name: bench, url: "http://127.0.0.1:{port}/hook"}}
rules:
"""


def rules(shipped: Path, webhook_port: int) -> str:
    """The shipped rules, with a first alert at once: the hold time is not what is measured."""
    body = shipped.read_text(encoding="utf-8").split("\nrules:\n", 1)[1].split("\nnotify:", 1)[0]
    return RULES.format(port=webhook_port) + body.replace("for: 30s", "for: 0s", 1)


class Clock:
    """When each memory step was sent, and when it was seen, by the node and GPU that took it."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}
        self.webhook: dict[str, float] = {}
        self.browsers: list[float] = []

    def delays_of_webhook(self) -> list[float]:
        return [seen - self.sent[key] for key, seen in self.webhook.items() if key in self.sent]


def receive(clock: Clock) -> http.server.ThreadingHTTPServer:
    """A webhook receiver on a free port, in a thread."""

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
            for alert in body["alerts"]:
                labels = alert["labels"]
                clock.webhook.setdefault(f"{labels.get('node')}/{labels.get('gpu')}", time.time())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def hello(node: str) -> wire.Hello:
    gpus = tuple(
        wire.GpuFacts(gpu=str(index), uuid=f"GPU-{node}-{index}", name="NVIDIA H100 80GB HBM3", total_bytes=80 * GIB)
        for index in range(GPUS)
    )
    facts = wire.NodeFacts(gpus=gpus, host=wire.HostFacts(memory_total_bytes=2000 * GIB))
    return wire.Hello(
        protocol=1,
        agent_version="bench",
        node=node,
        session="s",
        sent_at=time.time(),
        interval_seconds=1.0,
        facts=facts,
    )


def sample(seq: int, full_gpu: int | None) -> wire.Sample:
    """About 4 KB. A sawtooth at half the card; `full_gpu` is at 95 %."""
    processes = tuple(
        wire.GpuProcess(pid=10_000 + index, used_bytes=30 * GIB, name="ray::WorkerDict.actor_rollout")
        for index in range(3)
    )
    gpus = tuple(
        wire.GpuSample(
            gpu=str(index),
            used_bytes=(76 if index == full_gpu else 30 + (seq + index) % 20) * GIB,
            utilization_ratio=(seq * 7 + index) % 100 / 100,
            power_watts=400.0 + seq % 50,
            temperature_celsius=60.0 + index,
            processes=processes,
        )
        for index in range(GPUS)
    )
    host = wire.HostSample(
        memory_used_bytes=(500 + seq % 5) * GIB,
        swap_used_bytes=0,
        processes=tuple(
            wire.HostProcess(pid=index, name="ray::WorkerDict.actor_rollout", rss_bytes=20 * GIB) for index in range(20)
        ),
    )
    return wire.Sample(seq=seq, at=time.time(), gpus=gpus, host=host)


async def agent(url: str, number: int, clock: Clock, steps: "asyncio.Queue[int]", acks: list[int]) -> None:
    """One sample a second, each agent at its own moment of the second."""
    node = f"node-{number:03}"
    async with connect(f"{url}/ws/agent", compression=None, proxy=None) as connection:
        await connection.send(wire.encode(hello(node)).decode())
        await connection.recv()
        listening = asyncio.create_task(_count_acks(connection, acks))
        full: int | None = None
        seq = 0
        due = asyncio.get_running_loop().time() + number / 128
        while True:
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            due += 1.0
            seq += 1
            if full is None and not steps.empty():
                full = steps.get_nowait() % GPUS
                clock.sent[f"{node}/{full}"] = time.time()
            await connection.send(wire.encode(sample(seq, full)).decode())
            if listening.done():
                return


async def _count_acks(connection: ClientConnection, acks: list[int]) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for frame in connection:
            acks += [1] if '"ack"' in str(frame) else []


async def browser(url: str, clock: Clock, received: list[int]) -> None:
    seen: set[str] = set()
    async with connect(f"{url}/ws/live", compression=None, proxy=None, max_size=None) as connection:
        async for frame in connection:
            received.append(len(frame))
            if isinstance(frame, str) and frame.startswith('{"type":"alert"'):
                alert = msgspec.json.decode(frame)["alert"]
                key = f"{alert['labels'].get('node')}/{alert['labels'].get('gpu')}"
                if alert["state"] == "firing" and key in clock.sent and key not in seen:
                    seen.add(key)
                    clock.browsers.append(time.time() - clock.sent[key])


async def measure(url: str, process: psutil.Process, options: argparse.Namespace, clock: Clock) -> dict[str, float]:
    steps: asyncio.Queue[int] = asyncio.Queue()
    acks: list[int] = []
    received: list[int] = []
    tasks = [asyncio.create_task(agent(url, number, clock, steps, acks)) for number in range(options.agents)]
    tasks += [asyncio.create_task(browser(url, clock, received)) for _ in range(options.browsers)]
    await asyncio.sleep(SETTLE_SECONDS)
    before, started, bytes_before = cpu_seconds(process), time.monotonic(), sum(received)
    for number in range(int(options.seconds / STEP_EVERY_SECONDS)):
        steps.put_nowait(number)
        await asyncio.sleep(STEP_EVERY_SECONDS)
    after, seconds = cpu_seconds(process), time.monotonic() - started
    dead = [task.exception() for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not dead, dead
    assert acks, "the server has acknowledged nothing"
    return {
        "cores": (after[0] - before[0]) / seconds,
        "loop_cores": (after[1] - before[1]) / seconds,
        "rss_mib": process.memory_info().rss / 2**20,
        "browser_kb_s": (sum(received) - bytes_before) / seconds / 1000 / max(1, options.browsers),
    }


def cpu_seconds(process: psutil.Process) -> tuple[float, float]:
    """Of the whole process, and of its main thread, where the event loop runs; the rest is mostly the database."""
    whole = process.cpu_times()
    main = next(thread for thread in process.threads() if thread.id == process.pid)
    return whole.user + whole.system, main.user_time + main.system_time


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise SystemExit("the server did not start")


def free_port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--agents", type=int, default=128)
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--profile", metavar="FILE", help="profile the server with cProfile")
    options = parser.parse_args()
    clock, port = Clock(), free_port()
    hook = receive(clock)
    with tempfile.TemporaryDirectory() as folder:
        shipped = Path(__file__).resolve().parent.parent / "alerts.yaml"
        rule_file = Path(folder) / "alerts.yaml"
        rule_file.write_text(rules(shipped, hook.server_address[1]), encoding="utf-8")
        profiled = ["-m", "cProfile", "-o", options.profile] if options.profile else []
        command = [sys.executable, *profiled, "-m", "oomwatch", "serve", "--listen", f"127.0.0.1:{port}"]
        command += ["--db", f"{folder}/oomwatch.db", "--rules", str(rule_file), "--log-level", "warning"]
        with subprocess.Popen(command, env=os.environ) as server:
            try:
                wait_for(port)
                figures = asyncio.run(measure(f"ws://127.0.0.1:{port}", psutil.Process(server.pid), options, clock))
            finally:
                server.terminate()
    hook.shutdown()
    report(options, figures, clock)


def report(options: argparse.Namespace, figures: dict[str, float], clock: Clock) -> None:
    print(f"{options.agents} agents, {options.agents * GPUS} GPUs, {options.browsers} browsers, {options.seconds:g} s")
    cores, loop_cores = figures["cores"], figures["loop_cores"]
    print(f"  CPU {cores:.3f} of a core ({loop_cores:.3f} in the event loop), {figures['rss_mib']:.0f} MiB resident")
    print(
        f"  {figures['browser_kb_s']:.1f} kB/s to each browser; a sample is {len(wire.encode(sample(1, None)))} bytes"
    )
    for name, delays in (("webhook", clock.delays_of_webhook()), ("browser", clock.browsers)):
        if delays:
            ordered = sorted(delays)
            worst = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
            median = statistics.median(ordered)
            print(f"  sample -> {name}: median {median:.3f} s, p99 {worst:.3f} s, {len(ordered)} observations")


if __name__ == "__main__":
    main()
