"""What a server costs and how quick it is: 128 simulated agents with 1,024 GPUs, 50 browsers, a webhook.

    python -m bench.server [--seconds 20] [--agents 128] [--browsers 50] [--processes-every 10] [--server-python PATH]

Starts `oomwatch serve` as a process of its own. Every agent sends one sample a second, each at its own moment of the
second, and as real agents do the process tables in every tenth. First nothing happens; then, once a second, a GPU fills
up and its alert fires. A delay counts from the moment the memory is taken, and so has in it the wait for the next
sample: half a second on average. CPU is what the kernel has counted of each thread.
"""

import argparse
import asyncio
import contextlib
import http.server
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil
from bench._options import parser_of
from bench.compare.programs import add_server_python
from tests.ports import free_port
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from oomwatch import wire
from oomwatch.store.store import Store

GIB = 2**30
GPUS = 8
STEP_EVERY_SECONDS = 1.0
SETTLE_SECONDS = 5.0
GOLDEN = 0.618034  # steps fall on every moment of the second alike
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
    """When each memory step was taken, and when it was seen, by the node and GPU that took it."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self.webhook: list[float] = []  # delays
        self.browsers: list[float] = []

    def note(self, delays: list[float], key: str) -> None:
        if key in self.taken:
            delays.append(time.time() - self.taken[key])


class Receiver(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # else the kernel drops connections in a burst, and they try again after 1 and 3 s


def receive(clock: Clock) -> Receiver:
    """A webhook receiver on a free port, in a thread."""

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
            for alert in body["alerts"]:
                clock.note(clock.webhook, f"{alert['labels'].get('node')}/{alert['labels'].get('gpu')}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = Receiver(("127.0.0.1", 0), Hook)
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
        session=f"session of {node}",
        sent_at=time.time(),
        interval_seconds=1.0,
        facts=facts,
    )


def sample(seq: int, full_gpu: int | None = None, *, with_processes: bool = True) -> wire.Sample:
    """1 KB, or 4 KB with processes. A sawtooth at half the card; `full_gpu` is at 95 %."""
    processes = tuple(
        wire.GpuProcess(pid=10_000 + index, used_bytes=30 * GIB, name="ray::WorkerDict.actor_rollout")
        for index in range(3)
    )
    host_processes = tuple(
        wire.HostProcess(pid=index, name="ray::WorkerDict.actor_rollout", rss_bytes=20 * GIB) for index in range(20)
    )
    gpus = tuple(
        wire.GpuSample(
            gpu=str(index),
            used_bytes=(76 if index == full_gpu else 30 + (seq + index) % 20) * GIB,
            utilization_ratio=(seq * 7 + index) % 100 / 100,
            power_watts=400.0 + seq % 50,
            temperature_celsius=60.0 + index,
            processes=processes if with_processes else None,
        )
        for index in range(GPUS)
    )
    host = wire.HostSample(
        memory_used_bytes=(500 + seq % 5) * GIB,
        swap_used_bytes=0,
        processes=host_processes if with_processes else None,
    )
    return wire.Sample(seq=seq, at=time.time(), gpus=gpus, host=host)


class Load(NamedTuple):
    """What the agents and browsers share. `full`: the GPU that is full, by node number."""

    url: str
    clock: Clock
    full: dict[int, int]
    acks: list[int]
    received: list[int]  # bytes
    processes_every: int


async def agent(load: Load, number: int, agents: int) -> None:
    """One sample a second, each agent at its own moment of the second."""
    now = asyncio.get_running_loop().time
    async with connect(f"{load.url}/ws/agent", compression=None, proxy=None) as connection:
        await connection.send(wire.encode(hello(node_name(number))).decode())
        await connection.recv()
        listening = asyncio.create_task(_count_acks(connection, load.acks))
        seq = 0
        due = now() + number / agents
        while not listening.done():
            await asyncio.sleep(max(0.0, due - now()))
            due += 1.0
            seq += 1
            with_processes = (seq + number) % load.processes_every == 0
            told = sample(seq, load.full.get(number), with_processes=with_processes)
            await connection.send(wire.encode(told).decode())


def node_name(number: int) -> str:
    return f"node-{number:03}"


async def _count_acks(connection: ClientConnection, acks: list[int]) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for frame in connection:
            acks += [1] if '"ack"' in str(frame) else []


async def browser(load: Load) -> None:
    seen: set[str] = set()
    async with connect(f"{load.url}/ws/live", compression=None, proxy=None, max_size=None) as connection:
        async for frame in connection:
            load.received.append(len(frame))
            if isinstance(frame, str) and frame.startswith('{"type":"alert"'):
                alert = msgspec.json.decode(frame)["alert"]
                key = f"{alert['labels'].get('node')}/{alert['labels'].get('gpu')}"
                if alert["state"] == "firing" and key not in seen:
                    seen.add(key)
                    load.clock.note(load.clock.browsers, key)


async def take_memory(load: Load, agents: int, seconds: float) -> None:
    """Fill up one GPU a second, of one node after the other, at every moment of the second alike."""
    for number in range(int(seconds / STEP_EVERY_SECONDS)):
        await asyncio.sleep(number * GOLDEN % 1 * STEP_EVERY_SECONDS)
        node = number * 37 % agents
        load.full[node] = number % GPUS
        load.clock.taken[f"{node_name(node)}/{number % GPUS}"] = time.time()
        await asyncio.sleep(STEP_EVERY_SECONDS - number * GOLDEN % 1 * STEP_EVERY_SECONDS)


class Figures(NamedTuple):
    loop_cores: float
    other_cores: float
    rss_mib: float
    browser_kb_s: float


async def measure(load: Load, process: psutil.Process, options: argparse.Namespace) -> list[Figures]:
    """Of the quiet time, and of the time in which alerts fire."""
    tasks = [asyncio.create_task(agent(load, number, options.agents)) for number in range(options.agents)]
    tasks += [asyncio.create_task(browser(load)) for _ in range(options.browsers)]
    await asyncio.sleep(SETTLE_SECONDS)
    quiet = await _spent(load, process, options.browsers, lambda: asyncio.sleep(options.seconds))
    firing = await _spent(load, process, options.browsers, lambda: take_memory(load, options.agents, options.seconds))
    await asyncio.sleep(2.0)  # the last alert is on its way
    dead = [task.exception() for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not dead, dead
    assert load.acks, "the server has acknowledged nothing"
    return [quiet, firing]


async def _spent(
    load: Load, process: psutil.Process, browsers: int, meanwhile: Callable[[], Awaitable[None]]
) -> Figures:
    before, started, bytes_before = cpu_seconds(process.pid), time.monotonic(), sum(load.received)
    await meanwhile()
    after, seconds = cpu_seconds(process.pid), time.monotonic() - started
    return Figures(
        loop_cores=(after[0] - before[0]) / seconds,
        other_cores=(after[1] - before[1]) / seconds,
        rss_mib=process.memory_info().rss / 2**20,
        browser_kb_s=(sum(load.received) - bytes_before) / seconds / 1000 / max(1, browsers),
    )


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Of the main thread, where the event loop runs, and of the others, mostly the database's (Linux only)."""
    spent = {
        int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9
        for task in Path(f"/proc/{pid}/task").iterdir()
    }
    return spent[pid], sum(spent.values()) - spent[pid]


@contextlib.contextmanager
def serving(
    folder: str, port: int, python: str | None, profile: str | None = None
) -> Iterator[tuple[psutil.Process, float]]:
    """A server as from its second start on, and the seconds until it was ready.

    The first one makes the tables, for which it loads Alembic: 11 MiB.
    """
    Store.open(f"sqlite:///{folder}/oomwatch.db").close()
    profiled = ["-m", "cProfile", "-o", profile] if profile else []
    command = [python or sys.executable, *profiled, "-m", "oomwatch", "serve", "--listen", f"127.0.0.1:{port}"]
    command += ["--db", f"{folder}/oomwatch.db", "--rules", f"{folder}/alerts.yaml", "--log-level", "warning"]
    started = time.monotonic()
    with subprocess.Popen(command, env=os.environ) as server:
        try:
            wait_until_ready(port)
            yield psutil.Process(server.pid), time.monotonic() - started
        finally:
            server.terminate()


def wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer,
        ):
            if answer.status == http.HTTPStatus.OK:
                return
        time.sleep(0.02)
    raise SystemExit("the server did not start")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each of the two parts")
    parser.add_argument("--agents", type=int, default=128)
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--processes-every", type=int, default=10, metavar="SAMPLES")
    parser.add_argument("--profile", metavar="FILE", help="profile the server with cProfile")
    add_server_python(parser)
    options = parser.parse_args()
    clock, port = Clock(), free_port()
    hook = receive(clock)
    load = Load(f"ws://127.0.0.1:{port}", clock, {}, [], [], options.processes_every)
    with tempfile.TemporaryDirectory() as folder:
        shipped = Path(__file__).resolve().parent.parent / "alerts.yaml"
        Path(folder, "alerts.yaml").write_text(rules(shipped, hook.server_address[1]), encoding="utf-8")
        with serving(folder, port, options.server_python, options.profile) as (process, _):
            figures = asyncio.run(measure(load, process, options))
        with serving(folder, port, options.server_python) as (_, ready_seconds):
            pass
    hook.shutdown()
    hook.server_close()
    report(options, figures, clock, ready_seconds)


def report(options: argparse.Namespace, figures: list[Figures], clock: Clock, ready_seconds: float) -> None:
    sizes = [len(wire.encode(sample(1, with_processes=processes))) for processes in (False, True)]
    print(f"{options.agents} agents, {options.agents * GPUS} GPUs, {options.browsers} browsers, {options.seconds:g} s;")
    print(f"a sample has {sizes[0]} bytes, every {options.processes_every}. one {sizes[1]}")
    print(f"{'':34}{'quiet':>10}{'firing':>10}")
    _row("CPU, of a core", [one.loop_cores + one.other_cores for one in figures], "10.3f")
    _row("  in the event loop", [one.loop_cores for one in figures], "10.3f")
    _row("  in the database's threads", [one.other_cores for one in figures], "10.3f")
    _row("resident, MiB", [one.rss_mib for one in figures], "10.0f")
    _row("to each browser, kB/s", [one.browser_kb_s for one in figures], "10.1f")
    print(f"{'memory taken ->':34}{'median':>10}{'p99':>10}{'worst':>10}{'seen':>10}")
    for name, delays in (("  browser, s", clock.browsers), ("  webhook, s", clock.webhook)):
        ordered = sorted(delays)
        if ordered:
            p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
            print(f"{name:34}{statistics.median(ordered):10.3f}{p99:10.3f}{ordered[-1]:10.3f}{len(ordered):10}")
    print(f"started again, ready after {ready_seconds:.1f} s")


def _row(name: str, values: list[float], form: str) -> None:
    print(f"{name:34}" + "".join(format(value, form) for value in values))


if __name__ == "__main__":
    main()
