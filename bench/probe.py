"""What the probe costs the process that it is a guest in, and what probes cost the agent.

    python -m bench.probe [--seconds 20] [--torch PYTHON]

torch is the stand-in of the tests, which makes the counters anew at each call, as torch does, in torch's own size: 12
groups of 3 pools of 4 figures. What torch's C++ takes to fill them (a lock over a copy of some hundred numbers) is not
in these figures. The probe's CPU is what the kernel counted for its thread, in ns.

With --torch, a Python that has torch, what torch itself takes to remember a stack at an allocation, and to put stacks
into words for a snapshot: both work without a GPU. What the allocator and the making of the snapshot's other parts take
cannot be measured without one.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench._options import parser_of

from oomwatch_agent.probe.asking import Asking
from oomwatch_agent.probe.source import ProbeSource

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "agent/oomwatch_probe/site"
STARTS = 20

# Runs in a process of its own: to import the probe is to start it.
GUEST = """
import json, os, sys, time
import torch.cuda
import oomwatch_probe.sampling as sampling
from oomwatch_probe.sender import listeners

GROUPS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
          "inactive_split_bytes", "requested_bytes", "oversize_allocations", "oversize_segments", "pool_bytes")

def stats(device):
    made = {group: {pool: {"current": 1 << 35, "peak": 1 << 35, "allocated": 1 << 45, "freed": 1 << 44}
                    for pool in ("all", "large_pool", "small_pool")} for group in GROUPS}
    return dict(made, num_alloc_retries=3, num_ooms=0, num_sync_all_streams=1, num_device_alloc=9, num_device_free=9)

torch.cuda.memory_stats_as_nested_dict = stats

def cost(times=2000):
    sample = sampling._sampling.sample
    sample()
    longest, cpu, wall = 0.0, time.thread_time_ns(), time.perf_counter()
    for _ in range(times):
        before = time.perf_counter()
        sample()
        longest = max(longest, time.perf_counter() - before)
    return {"cpu_us": (time.thread_time_ns() - cpu) / times / 1000, "longest_ms": longest * 1000}

def thread_ns():
    total = 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            with open("/proc/self/task/%s/schedstat" % task) as file:
                total += int(file.read().split()[0])
    return total

found = {"before CUDA is initialised": cost()}
torch.cuda.init()
for count in (1, 8):
    torch.cuda.devices[:] = [{}] * count
    torch.cuda.uuids.update({index: "7f3c9a10-1111-2222-3333-44445555666%d" % index for index in range(count)})
    found["%d device(s)" % count] = cost()
deaf, live = os.environ["DEAF"], os.environ["OOMWATCH_PROBE_SOCKET"]
os.environ["OOMWATCH_PROBE_SOCKET"] = deaf
found["the agent's queue is full"] = cost()
os.environ["OOMWATCH_PROBE_SOCKET"] = deaf + ".nobody"
found["no agent"] = cost()
os.environ["OOMWATCH_PROBE_SOCKET"] = live
for count in (1, 8):
    torch.cuda.devices[:] = [{}] * count
    before, start = thread_ns(), time.monotonic()
    time.sleep(float(sys.argv[1]))
    found["thread, %d device(s)" % count] = (thread_ns() - before) / 1e9 / (time.monotonic() - start)
print(json.dumps(found))
"""


# A program whose history is asked for, and which notices each time it has to wait.
ACTING = """
import sys, threading, time
import torch.cuda
from torch.cuda import memory
import oomwatch_probe.sampling as sampling
ENTRIES, DEPTH = 100_000, 40
frames = [{"filename": "/env/lib/python3.11/site-packages/module_%d.py" % i, "line": i, "name": "call_%d" % i}
          for i in range(4_000)]
def entry(at):
    stack = [frames[(at * 7 + level) % len(frames)] for level in range(DEPTH)] if at % 3 == 0 else []
    return {"action": "alloc", "addr": 1 << 40 | at, "size": at * 512, "stream": 0, "time_us": at, "frames": stack,
            "compile_context": "N/A", "pool_id": (0, 0)}
memory._snapshot = lambda device=None: {"segments": [], "device_traces": [list(memory.trace)], "settings": {}}
memory.trace.extend(entry(at) for at in range(ENTRIES))
memory._record_memory_history = lambda enabled="all", **how: setattr(torch._C, "recording", enabled is not None)
torch.cuda.devices[:] = [torch.cuda.fill(reserved=1 << 35)]
torch.cuda.init()
print("ready", flush=True)
longest, over = 0.0, threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()
last = time.perf_counter()
while not over.is_set():
    time.sleep(0.001)
    now = time.perf_counter()
    longest, last = max(longest, now - last), now
print(longest)
"""

REAL_TORCH = """
import threading, time, sys, torch
profiler = torch._C._profiler
def at_depth(levels, do):
    return at_depth(levels - 1, do) if levels else do()
def gather(times):
    began, found = time.thread_time(), [None] * times
    for number in range(times):
        found[number] = profiler.gather_traceback(python=True, script=True, cpp=False)
    return found, (time.thread_time() - began) / times * 1e6
known, began, cpu = set(sys.modules), time.perf_counter(), time.process_time()
profiler.symbolize_tracebacks(gather(1)[0])
print("torch %s: the first snapshot with a stack has it import %d modules (torch._inductor): %.1f s CPU" % (
    torch.__version__, len(set(sys.modules) - known), time.process_time() - cpu))
for depth in (20, 40, 60):
    stacks, each_us = at_depth(depth, lambda: gather(100_000))
    began = time.perf_counter()
    profiler.symbolize_tracebacks(stacks)
    print("torch, %d frames deep: %.2f us CPU a remembered stack, %.2f s to put 100,000 into words" % (
        depth, each_us, time.perf_counter() - began))
"""


def guest(folder: Path, seconds: float) -> None:
    source = ProbeSource(str(folder / "probe.sock"))
    source.open()
    done = threading.Event()
    reader = threading.Thread(target=_read, args=(source, done))
    reader.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(folder / "deaf.sock"))
        environ = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'tests/probe/standin'}:{ROOT / 'agent'}",
            "OOMWATCH_PROBE_SOCKET": str(folder / "probe.sock"),
            "DEAF": str(folder / "deaf.sock"),
        }
        program = [sys.executable, "-c", GUEST, str(seconds)]
        printed = subprocess.run(program, env=environ, capture_output=True, text=True, check=True).stdout
    done.set()
    reader.join()
    source.close()
    for name, figure in json.loads(printed).items():
        if isinstance(figure, dict):
            print(f"one sample, {name:28} {figure['cpu_us']:7.1f} us CPU, longest call {figure['longest_ms']:.3f} ms")
        else:
            print(f"{name:40} {figure:7.5%} of a core")


def _read(source: ProbeSource, done: threading.Event, pause_seconds: float = 1.0) -> None:
    while not done.wait(pause_seconds):
        source.read(slow=False)


def acts(folder: Path) -> None:
    """From the asking to the answer, and what the program notices of it."""
    asking = Asking(interval_seconds=0.1)
    source = ProbeSource(str(folder / "acts.sock"), asking=asking)
    source.open()
    done = threading.Event()
    reader = threading.Thread(target=_read, args=(source, done, 0.1))
    reader.start()
    environ = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'tests/probe/standin'}:{ROOT / 'agent'}",
        "OOMWATCH_PROBE_SOCKET": str(folder / "acts.sock"),
    }
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ACTING], env=environ, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        while not asking.knows(program.pid):
            time.sleep(0.05)
        for act in ("stacks", "memory_snapshot"):
            _ask(asking, program.pid, act, folder / act)
        longest = float(program.communicate()[0])
    print(f"longest wait of the program's own thread meanwhile: {longest * 1000:.0f} ms")
    done.set()
    reader.join()
    source.close()


def _ask(asking: Asking, pid: int, act: str, folder: Path) -> None:
    folder.mkdir()
    what = {"id": act, "folder": str(folder), "seconds": 2.0, "max_entries": 1, "max_bytes": 2**30}
    cpu, wall = _cpu_seconds(pid), time.monotonic()
    asking.ask(pid, act, what, 120.0)
    took, used = time.monotonic() - wall, _cpu_seconds(pid) - cpu
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    print(f"{act}: answered after {took:.1f} s, {used:.2f} s CPU of the process, {size:.1f} MiB in files")


def _cpu_seconds(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def start() -> None:
    """What a Python that never imports torch pays for the folder on its path."""
    took = {}
    for name, path in (("without", ""), ("with", str(SITE))):
        environ = {**os.environ, "PYTHONPATH": path}
        wall = []
        for _ in range(STARTS):
            before = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], env=environ, check=True)
            wall.append(time.perf_counter() - before)
        took[name] = min(wall) * 1000
    print(
        f"start of a Python: {took['without']:.1f} ms without, {took['with']:.1f} ms with the probe (best of {STARTS})"
    )


def agent(folder: Path, seconds: float) -> None:
    """CPU of receiving and reading: 32 messages a second, and as many as one process can send."""
    devices = [{"index": index, "uuid": f"uuid-{index}", "reserved_bytes": 1 << 35} for index in range(8)]
    content = json.dumps({"v": 1, "pid": 1, "started_at": 1.0, "door": "bench", "devices": devices}).encode()
    source = ProbeSource(str(folder / "agent.sock"))
    source.open()
    for name, pause in (("32 messages a second", 1 / 32), ("a flood", 0.0)):
        code = (
            "import socket, sys, time\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1])\n"
            "while True: s.send(sys.argv[2].encode()); time.sleep(float(sys.argv[3])) if sys.argv[3] != '0.0' else 0\n"
        )
        program = [sys.executable, "-c", code, str(folder / "agent.sock"), content.decode(), str(pause)]
        with subprocess.Popen(program) as sender:
            source.read(slow=False)
            cpu, wall = time.process_time(), time.monotonic()
            while time.monotonic() - wall < seconds:
                source.read(slow=False)
                time.sleep(1.0)
            share = (time.process_time() - cpu) / (time.monotonic() - wall)
            sender.kill()
        print(f"the agent's side, {name:22} {share:7.3%} of a core")
    source.close()


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each measurement over time")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch")
    options = parser.parse_args()
    seconds = options.seconds
    if options.torch:
        subprocess.run([options.torch, "-c", REAL_TORCH], check=True)
    with tempfile.TemporaryDirectory() as name:
        acts(Path(name))
        guest(Path(name), seconds)
        start()
        agent(Path(name), seconds)


if __name__ == "__main__":
    main()
