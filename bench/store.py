"""What the database costs: CPU, bytes a value, and how long questions take.

    python -m bench.store [NODES] [HOURS]

Nodes of 8 GPUs at 1 Hz are recorded and kept up as a server does it (a flush every 5 seconds, housekeeping after each):
CPU by what it was spent on, bytes by the fineness of what is kept. Then six hours of one node, repeated to a day and
copied to as many nodes as make a run of 64 GPUs: what charts ask for, of the store and over HTTP's way.

The readings are made to look like a colocated trainer's. Memory, in the 2 MiB blocks that the driver gives, jumps
between two phases in each step, creeps from step to step and flickers by some blocks; whole percents of utilization;
power in milliwatts with the noise of a sensor; a temperature that follows the load; a host with every figure that the
kernel tells, its memory moving by pages at each reading. Every ten seconds processes are listed. A value is one that
was read: what is missing is not counted. CPU is that of this process with all its threads, and less disturbed by
neighbours than time.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec
from bench._options import parser_of

from oomwatch import wire
from oomwatch.settings import Settings
from oomwatch.store.sizes import KEPT, Sizes
from oomwatch.store.store import Batch, Entry, Store
from oomwatch.web.rows import history_of

GPUS, RUN_NODES = 8, 8
FLUSH_SECONDS, SLOW_SECONDS = round(Settings().flush_interval), 10
START = 1_700_000_000.0 // 86_400 * 86_400
HOUR, DAY = 3600, 86_400
RECORDED = 6 * HOUR  # a span of the widest tier; repeated to a day
MIB, PAGE = 2**20, 4096
# Of each second of a node: six figures of each GPU, eight of the host. Of each slow one besides: three and five.
VALUES, SLOW_VALUES = GPUS * 6 + 8, GPUS * 3 + 5
FIGURES = {"raw": 1, "10s": 3, "1m": 3}  # least, greatest and mean
WIDTH_SECONDS = {"raw": 1, "10s": 10, "1m": 60}


class Spent(NamedTuple):
    cpu_seconds: float
    longest_seconds: float
    calls: int


def main() -> None:
    """Run and print."""
    parser = parser_of(__doc__)
    parser.add_argument("nodes", type=int, nargs="?", default=16)
    parser.add_argument("hours", type=int, nargs="?", default=2)
    options = parser.parse_args()
    nodes, hours = options.nodes, options.hours
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/bench.db")
        recorded, kept_up = record(store, nodes, hours * HOUR)
        _tell_cost(recorded, kept_up, hours * HOUR, nodes)
        store.close()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/day.db")
        record(store, 1, RECORDED)
        keep_up(store, START + RECORDED + 2 * HOUR)
        store.checkpoint()
        _tell_bytes(store.sizes(), RECORDED)
        repeat_to_a_run(store)
        _query(store)
        store.close()


def record(store: Store, nodes: int, seconds: int) -> tuple[Spent, Spent]:
    store.record(Batch(entries=tuple(_hello(node) for node in range(nodes))))
    recorded, kept_up = Spent(0, 0, 0), Spent(0, 0, 0)
    for second in range(0, seconds, FLUSH_SECONDS):
        batch = Batch(entries=tuple(entry for node in range(nodes) for entry in entries(node, second)))
        recorded = _added(recorded, partial(store.record, batch))
        more = True
        while more:
            kept_up, more = _merged(kept_up, store, START + second + FLUSH_SECONDS)
    return recorded, kept_up


def _merged(so_far: Spent, store: Store, now: float) -> tuple[Spent, bool]:
    more: list[bool] = []
    spent = _added(so_far, lambda: more.append(store.compact(now)))
    return spent, more[0]


def _added(so_far: Spent, work: Callable[[], object]) -> Spent:
    before = time.process_time()
    work()
    spent = time.process_time() - before
    return Spent(so_far.cpu_seconds + spent, max(so_far.longest_seconds, spent), so_far.calls + 1)


def keep_up(store: Store, now: float) -> None:
    while store.compact(now):
        pass


def _tell_cost(recorded: Spent, kept_up: Spent, seconds: int, nodes: int) -> None:
    gpus = nodes * GPUS
    for what, spent in (("record", recorded), ("compact", kept_up)):
        per_second = 1000 * spent.cpu_seconds / seconds
        print(f"{what}: {per_second:.2f} ms of CPU a second for {gpus} GPUs", end=", ")
        print(f"{1024 / gpus * per_second:.1f} ms for 1,024; a call at most {1000 * spent.longest_seconds:.0f} ms")


def _tell_bytes(sizes: Sizes, seconds: int) -> None:
    values = seconds * VALUES + seconds // SLOW_SECONDS * SLOW_VALUES
    counted = {}
    for one in sizes.history:
        counted[one.kept] = seconds // WIDTH_SECONDS[one.kept] * (VALUES + SLOW_VALUES) * FIGURES[one.kept]
    counted["raw"] = values
    for one in sizes.history:
        each = one.bytes / counted[one.kept]
        print(f"{one.kept}: {one.chunks} rows, {each:.2f} bytes a value", end=", ")
        print(f"{one.bytes / seconds * DAY / (GPUS + 1) / 1e6:.2f} MB a day of a GPU or host")
    used = sizes.used_bytes or 0
    print(
        f"all in: {used / 1e6:.1f} MB, {used / values:.2f} bytes for each value read, with what the tiers take of it;"
    )
    print(f"  {used / sum(counted[kept] for kept in KEPT):.2f} bytes for each value kept")


_REPEATS = (
    ("INSERT INTO chunks (subject, start_ms, end_ms, blob, folded) "
    "SELECT subject, start_ms + ?1, end_ms + ?1, blob, folded FROM chunks WHERE start_ms < ?2"),
    ("INSERT INTO tiers (subject, width_ms, start_ms, first_ms, end_ms, blob) "
    "SELECT subject, width_ms, start_ms + ?1, first_ms + ?1, end_ms + ?1, blob FROM tiers WHERE start_ms < ?2"),
)  # fmt: skip
_COPIES = (
    "INSERT INTO subjects SELECT id + ?, 'node-' || ?, gpu FROM subjects WHERE id < 1000",
    (
        "INSERT INTO chunks (subject, start_ms, end_ms, blob, folded) "
        "SELECT subject + ?, start_ms, end_ms, blob, folded FROM chunks WHERE subject < 1000 AND ?"
    ),
    (
        "INSERT INTO tiers (subject, width_ms, start_ms, first_ms, end_ms, blob) "
        "SELECT subject + ?, width_ms, start_ms, first_ms, end_ms, blob FROM tiers WHERE subject < 1000 AND ?"
    ),
)


def repeat_to_a_run(store: Store) -> None:
    """The same day for the other nodes of a run, and a quarter of an hour more, some of it not merged yet."""
    store.record(Batch(entries=tuple(_hello(node) for node in range(RUN_NODES))))
    with store._database.writing() as connection:  # noqa: SLF001 - no one but a benchmark asks for it
        for times in range(1, DAY // RECORDED):
            for repeat in _REPEATS:
                connection.exec_driver_sql(repeat, (1000 * RECORDED * times, 1000 * (START + RECORDED)))
        for node in range(1, RUN_NODES):
            for copy in _COPIES:
                connection.exec_driver_sql(copy, (1000 * node, node))
    for second in range(DAY, DAY + 900, FLUSH_SECONDS):
        store.record(Batch(entries=tuple(entry for node in range(RUN_NODES) for entry in entries(node, second))))
    keep_up(store, START + DAY + 900)


def _query(store: Store) -> None:
    end = START + DAY + 900
    for hours, step in ((1, 6), (6, 36), (24, 144), (24, 1)):
        _ask_one(store, end - hours * HOUR, end, step)
    places = store.gpus(run="bench")
    of_run = partial(store.series_of_gpus, "gpu_used_ratio", places, end - DAY, end, 144)
    print(f"series_of_gpus: 24 h of a run of {len(places)} GPUs, {len(of_run()[0].times)} points each", end=": ")
    print(f"{_spent(of_run)}; with its JSON {_spent(lambda: msgspec.json.encode(list(map(history_of, of_run()))))}")
    recalled = _spent(lambda: list(store.recent_samples(end - 900)))
    print(f"recent_samples: 15 min of {RUN_NODES} nodes of {GPUS} GPUs: {recalled}")
    print(f"sizes: {_spent(store.sizes)}")


def _ask_one(store: Store, start: float, end: float, step: float) -> None:
    ask = partial(store.series, "gpu_used_bytes", {"node": "node-0", "gpu": "3"}, start, end, step)
    found = ask()
    told = f"{(end - start) / HOUR:g} h of one GPU in {len(found.times)} points of {found.step_seconds:g} s"
    print(f"series: {told}: {_spent(ask)}; with its JSON {_spent(lambda: msgspec.json.encode(history_of(ask())))}")


def _spent(work: Callable[[], object]) -> str:
    times = []
    for _ in range(5):
        began, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.process_time() - cpu, time.perf_counter() - began))
    cpu, wall = sorted(times)[2]
    return f"{1000 * cpu:.1f} ms of CPU ({1000 * wall:.1f} ms)"


def _hello(node: int) -> Entry:
    gpus = tuple(
        wire.GpuFacts(gpu=str(gpu), uuid=f"GPU-{node}-{gpu}", name="H100", total_bytes=80 * 1024 * MIB)
        for gpu in range(GPUS)
    )
    hello = wire.Hello(
        protocol=1, agent_version="0", node=f"node-{node}", session=f"s{node}", sent_at=START, interval_seconds=1.0,
        facts=wire.NodeFacts(gpus=gpus), run="bench",
    )  # fmt: skip
    return Entry(node=hello.node, session=hello.session, received_at=START, message=hello)


def entries(node: int, first: int) -> Iterator[Entry]:
    noise = random.Random(node * 1_000_003 + first)
    for second in range(first, first + FLUSH_SECONDS):
        at = START + second + noise.gauss(0, 0.001) + 0.5
        slow = second % SLOW_SECONDS == 0
        gpus = tuple(_gpu(noise, gpu, second + 7 * node, slow=slow) for gpu in range(GPUS))
        sample = wire.Sample(seq=second + 1, at=at, gpus=gpus, host=_host(noise, second, slow=slow))
        yield Entry(node=f"node-{node}", session=f"s{node}", received_at=at, message=sample)


def _host(noise: random.Random, second: int, *, slow: bool) -> wire.HostSample:
    used = 400 * 1024 * MIB + (second % 97) * 300 * MIB + PAGE * noise.randrange(50_000)
    pressure = noise.choice((0.0, 0.0, 0.0, 0.0012, 0.0031))
    return wire.HostSample(
        memory_used_bytes=used,
        cgroup_used_bytes=used - 9 * 1024 * MIB,
        swap_used_bytes=0,
        shm_used_bytes=30 * 1024 * MIB + PAGE * (second // 97),
        memory_pressure_some_ratio=pressure,
        memory_pressure_full_ratio=pressure / 2,
        oom_kill_total=0,
        disk_used_bytes=2**40 + PAGE * (second // 3),
        processes=_host_processes(noise) if slow else None,
    )


def _host_processes(noise: random.Random) -> tuple[wire.HostProcess, ...]:
    names = ("ray::TaskRunner", "VLLM::EngineCore", *["ray::WorkerDict"] * GPUS)
    return tuple(
        wire.HostProcess(pid=pid, name=name, rss_bytes=20 * 1024 * MIB + PAGE * noise.randrange(50_000))
        for pid, name in enumerate(names)
    )


def _processes(used_bytes: int, *, training: bool) -> tuple[wire.GpuProcess, ...]:
    engine_bytes = 4 * 1024 * MIB if training else used_bytes - 8 * 1024 * MIB
    trainer = wire.GpuProcess(pid=1, name="ray::WorkerDict", used_bytes=used_bytes - engine_bytes, run="bench")
    return trainer, wire.GpuProcess(pid=2, name="VLLM::Worker", used_bytes=engine_bytes, run="bench", role="rollout")


def _gpu(noise: random.Random, gpu: int, second: int, *, slow: bool) -> wire.GpuSample:
    step, within = divmod(second, 97)
    training = within >= 40
    used = (58_000 + 14 * (step % 40) + 2 * (within // 9)) if training else 71_400 + 2 * (step % 3)
    used_bytes = (used + 2 * gpu + 2 * noise.choice((0, 0, 0, 0, 1, 2, 5))) * MIB
    heat = 61 + gpu % 3 + (min(within - 40, 20) / 4 if training else max(0.0, 5 - within / 4))
    return wire.GpuSample(
        gpu=str(gpu),
        used_bytes=used_bytes,
        utilization_ratio=noise.choice((0.97, 0.98, 0.99, 1.0)) if training else noise.randrange(20, 100) / 100,
        power_watts=round(noise.gauss(640 if training else 420, 9), 3),
        temperature_celsius=float(int(heat + noise.random())),
        ecc_uncorrected_total=0,
        processes=_processes(used_bytes, training=training) if slow else None,
    )


if __name__ == "__main__":
    main()
