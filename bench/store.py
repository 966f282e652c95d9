"""What the database costs: 128 nodes of 8 GPUs at 1 Hz, flushed every 10 seconds, and a day of one node.

    PYTHONPATH=backend python bench/store.py [NODES] [MINUTES]

Readings are made to look like a colocated trainer's: memory that stays put within a phase and jumps between two, whole
percents of utilization, noisy milliwatts; every ten seconds processes are listed. Prints CPU (this process, all
threads), bytes on disk and query times.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from oomwatch import wire
from oomwatch.store.store import Batch, Entry, Store

GPUS = 8
FLUSH_SECONDS = SLOW_SECONDS = 10
VALUES_PER_NODE = GPUS * 6 + 7  # the columns of columns.GPU_FIELDS and HOST_FIELDS
START = 1_700_000_000.0 // 3600 * 3600
MIB = 2**20
_random = random.Random()


def main() -> None:
    """Run and print."""
    nodes, minutes = (int(argument) for argument in [*sys.argv[1:], "128", "70"][:2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        store = Store.open(f"sqlite:///{path}")
        _record(store, nodes, minutes, path)
        _compact(store, path, nodes, minutes)
        store.close()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/day.db")
        _fill_a_day(store)
        _query(store)
        store.close()


def _record(store: Store, nodes: int, minutes: int, path: Path) -> None:
    store.record(Batch(entries=tuple(_hello(node) for node in range(nodes))))
    flushes, cpu, longest = minutes * 60 // FLUSH_SECONDS, 0.0, 0.0
    for flush in range(flushes):
        batch = _batch(nodes, flush)
        before = time.process_time()
        store.record(batch)
        spent = time.process_time() - before
        cpu, longest = cpu + spent, max(longest, spent)
    seconds = flushes * FLUSH_SECONDS
    chunks = flushes * nodes * (GPUS + 1)
    print(f"record: {1000 * cpu / seconds:.2f} ms CPU per second; a flush {1000 * cpu / flushes:.0f} ms,", end=" ")
    print(f"at most {1000 * longest:.0f} ms; {chunks / cpu:,.0f} chunk rows/s, {nodes * seconds / cpu:,.0f} samples/s")
    print(f"  on disk before merging: {_size(path) / (nodes * seconds * VALUES_PER_NODE):.2f} bytes a value")


def _compact(store: Store, path: Path, nodes: int, minutes: int) -> None:
    before, calls, longest = time.process_time(), 0, 0.0
    while True:
        began = time.process_time()
        more = store.compact(START + 10 * 3600)
        longest, calls = max(longest, time.process_time() - began), calls + 1
        if not more:
            break
    cpu = time.process_time() - before
    print(
        f"compact: {1000 * cpu / (minutes * 60):.2f} ms CPU per second; {calls} calls, at most {1000 * longest:.0f} ms"
    )
    values = nodes * minutes * 60 * VALUES_PER_NODE
    print(f"  chunks after merging: {_chunk_bytes(store) / values:.2f} bytes a value", end=", ")
    print(f"{_chunk_bytes(store) / (values / VALUES_PER_NODE * (GPUS + 1)):.1f} bytes a reading of a GPU or host")
    print(f"  file (free pages are used again): {_size(path) / 1e6:.0f} MB")


def _fill_a_day(store: Store) -> None:
    store.record(Batch(entries=(_hello(0),)))
    for flush in range(86_400 // FLUSH_SECONDS):
        store.record(_batch(1, flush))
        if flush < 86_400 // FLUSH_SECONDS - 180:
            store.compact(START + flush * FLUSH_SECONDS)


def _query(store: Store) -> None:
    labels, end = {"node": "node-0", "gpu": "3"}, START + 86_400
    for hours, step in ((1, 10), (24, 60), (24, 1)):
        points = len(store.series("gpu_used_bytes", labels, end - hours * 3600, end, step).times)
        spent = _milliseconds(lambda h=hours, s=step: store.series("gpu_used_bytes", labels, end - h * 3600, end, s))  # type: ignore[misc]
        print(f"series: {hours} h of one GPU in {points} points: {spent:.1f} ms")
    spent = _milliseconds(lambda: list(store.recent_samples(end - 900)))
    print(f"recent_samples: 15 min of one node of {GPUS} GPUs: {spent:.0f} ms")


def _milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return 1000 * sorted(times)[2]


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


def _batch(nodes: int, flush: int) -> Batch:
    return Batch(entries=tuple(entry for node in range(nodes) for entry in _entries(node, flush)))


def _entries(node: int, flush: int) -> Iterator[Entry]:
    _random.seed(node * 1_000_003 + flush)
    for second in range(flush * FLUSH_SECONDS, (flush + 1) * FLUSH_SECONDS):
        at = START + second + _random.gauss(0, 0.001) + 0.5
        slow = second % SLOW_SECONDS == 0
        gpus = tuple(_gpu(gpu, second + 7 * node, slow=slow) for gpu in range(GPUS))
        host = wire.HostSample(
            memory_used_bytes=400 * 1024 * MIB + 4096 * _random.randrange(50_000),
            oom_kill_total=0,
            processes=_host_processes() if slow else None,
        )
        sample = wire.Sample(seq=second + 1, at=at, gpus=gpus, host=host)
        yield Entry(node=f"node-{node}", session=f"s{node}", received_at=at, message=sample)


def _host_processes() -> tuple[wire.HostProcess, ...]:
    names = ("ray::TaskRunner", "VLLM::EngineCore", *["ray::WorkerDict"] * GPUS)
    return tuple(
        wire.HostProcess(pid=pid, name=name, rss_bytes=20 * 1024 * MIB + 4096 * _random.randrange(50_000))
        for pid, name in enumerate(names)
    )


def _processes(used_bytes: int, *, training: bool) -> tuple[wire.GpuProcess, ...]:
    engine_bytes = 4 * 1024 * MIB if training else used_bytes - 8 * 1024 * MIB
    trainer = wire.GpuProcess(pid=1, name="ray::WorkerDict", used_bytes=used_bytes - engine_bytes, run="bench")
    return trainer, wire.GpuProcess(pid=2, name="VLLM::Worker", used_bytes=engine_bytes, run="bench", role="rollout")


def _gpu(gpu: int, second: int, *, slow: bool) -> wire.GpuSample:
    step, within = divmod(second, 97)
    training = within >= 40
    used = (58_000 + 13 * (step % 40) + 2 * (within // 9)) if training else 71_400 + 2 * (step % 3)
    used_bytes = (used + 2 * gpu) * MIB
    return wire.GpuSample(
        gpu=str(gpu),
        used_bytes=used_bytes,
        utilization_ratio=_random.choice((0.97, 0.98, 0.99, 1.0)) if training else _random.randrange(20, 100) / 100,
        power_watts=round(_random.gauss(640 if training else 420, 9), 3),
        temperature_celsius=float(61 + gpu % 3 + _random.choice((0, 0, 0, 1))),
        ecc_uncorrected_total=0,
        processes=_processes(used_bytes, training=training) if slow else None,
    )


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir())


def _chunk_bytes(store: Store) -> int:
    with store._database.reading() as connection:  # noqa: SLF001 - no one but a benchmark asks for it
        return int(connection.exec_driver_sql("SELECT sum(length(blob) + 12) FROM chunks").scalar() or 0)


if __name__ == "__main__":
    main()
