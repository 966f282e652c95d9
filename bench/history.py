"""History beside Prometheus': bytes on disk of the same values, and how long the same questions take.

    python -m bench.history [HOURS]

Some hours of one node (bench.store says what its readings look like) are recorded, merged and folded as a server does
it, and given to Prometheus by promtool, in blocks as large as its own compaction makes of them. Bytes are those of the
files without what is empty in them: ours with every fineness and the database's own, theirs with the index. Then the
same hours are repeated to a day and to eight nodes, a run of 64 GPUs, in SQLite, PostgreSQL and Prometheus, and each is
asked what a chart asks: 24 hours of one GPU, and the peaks of all. Of five times the middle one, by the clock and in
CPU of the process that answers (PostgreSQL's own not counted).
"""

# ruff: noqa: SLF001 - the database's own figures are nobody's but a benchmark's to ask for
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from subprocess import run
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
import psutil
from bench._options import parser_of
from bench.store import DAY, FLUSH_SECONDS, HOUR, RUN_NODES, START
from sqlalchemy import insert, select, text
from tests.ports import free_port
from tests.postgres.server import PostgresServer
from tests.prometheus.servers import Prometheus, need, until

from bench import store as bench_store
from oomwatch import wire
from oomwatch.store import columns
from oomwatch.store.beside import beside_gpus, beside_host
from oomwatch.store.schema import chunks, nodes, runs, subjects, tiers
from oomwatch.store.store import Store

STEP_SECONDS = 144
BLOCK_SECONDS = 6 * HOUR  # three of those that Prometheus writes first, as its compaction makes them one
USED = "gpu_used_bytes"


class Took(NamedTuple):
    clock_seconds: float
    cpu_seconds: float


def main() -> None:
    """Run and print."""
    parser = parser_of(__doc__)
    parser.add_argument("hours", type=int, nargs="?", default=6)
    hours = parser.parse_args().hours
    bench_store.RECORDED = hours * HOUR
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        store = Store.open(f"sqlite:///{folder}/day.db")
        stack.callback(store.close)
        bench_store.record(store, 1, hours * HOUR)
        bench_store.keep_up(store, START + hours * HOUR + 2 * HOUR)
        values = _to_prometheus(folder / "all", _lines(hours * HOUR))
        _tell_bytes(store, folder / "all", values)
        bench_store.repeat_to_a_run(store)
        end = START + DAY
        _tell_times("SQLite", store, end)
        _on_postgres(store, stack, end)
        used = _to_prometheus(folder / "day", _day_of_used(hours * HOUR))
        print(f"Prometheus has {used:,} readings of device memory")
        _ask_prometheus(folder / "day", end)


# ---------------------------------------------------------------- the same values for Prometheus


class Line(NamedTuple):
    at: float
    text: str  # in OpenMetrics


def _lines(seconds: int) -> Iterator[Line]:
    """Everything that a node's readings say, whether told each second or every ten."""
    for first in range(0, seconds, FLUSH_SECONDS):
        for entry in bench_store.entries(0, first):
            sample = entry.message
            assert isinstance(sample, wire.Sample)
            for name, labels, value in _figures(sample):
                yield Line(sample.at, f'{name}{{node="node-0"{labels}}} {value} {sample.at:.3f}\n')


def _figures(sample: wire.Sample) -> Iterator[tuple[str, str, float]]:
    beside = beside_gpus(sample)
    for gpu in sample.gpus:
        labels = f',gpu="{gpu.gpu}"'
        for field in columns.GPU_FIELDS:
            value = getattr(gpu, field.name)
            yield f"gpu_{field.name}", labels, field.words.index(value) if field.words else value
        for name, value in beside[gpu.gpu]._asdict().items() if gpu.gpu in beside else ():
            if value is not None:
                yield f"gpu_{name}", labels, value
    for name, value in _of_host(sample):
        if value is not None:
            yield f"host_{name}", "", value


def _of_host(sample: wire.Sample) -> Iterable[tuple[str, float | None]]:
    for field in columns.HOST_FIELDS:
        yield field.name, getattr(sample.host, field.name)
    yield from beside_host(sample.engines, sample.host)._asdict().items()


def _day_of_used(seconds: int) -> Iterator[Line]:
    """Device memory alone, of eight nodes and a day: those hours again and again."""
    told = [
        (sample.at, [gpu.used_bytes for gpu in sample.gpus])
        for first in range(0, seconds, FLUSH_SECONDS)
        for sample in (entry.message for entry in bench_store.entries(0, first))
        if isinstance(sample, wire.Sample)
    ]
    for again in range(0, DAY, seconds):
        for at, used in told:
            for node in range(RUN_NODES):
                for gpu, value in enumerate(used):
                    line = f'{USED}{{node="node-{node}",gpu="{gpu}"}} {value} {at + again:.3f}\n'
                    yield Line(at + again, line)


def _to_prometheus(data: Path, lines: Iterable[Line]) -> int:
    """Blocks, each of a text of its own since promtool reads all of one for every block. Gives the number of values."""
    data.mkdir()
    count = 0
    for _, piece in groupby(lines, key=lambda line: line.at // BLOCK_SECONDS):
        told = data.with_suffix(".txt")
        with told.open("w", encoding="ascii") as out:
            for line in piece:
                out.write(line.text)
                count += 1
            out.write("# EOF\n")
        longest = f"--max-block-duration={BLOCK_SECONDS // HOUR}h"
        run([need("promtool"), "tsdb", "create-blocks-from", longest, "openmetrics", told, data],
            check=True, capture_output=True)  # fmt: skip
        told.unlink()
    return count


def _tell_bytes(store: Store, data: Path, values: int) -> None:
    theirs = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
    print(f"{values:,} values; Prometheus: {theirs / values:.2f} bytes a value, in {len(list(data.iterdir()))} blocks")
    sizes = store.sizes()
    raw = next(one.bytes for one in sizes.history if one.kept == "raw")
    used = _pages(store, ("chunks", "tiers"))
    print(
        f"oomwatch, SQLite: {used / values:.2f} bytes a value with all three finenesses and the room in their pages; "
        f"every reading alone {raw / values:.2f} without it"
    )


def _pages(store: Store, tables: Sequence[str]) -> int:
    """Bytes of the pages that are of these tables."""
    with store._database.reading() as connection:
        names = ", ".join(f"'{table}'" for table in tables)
        asked = f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({names})"  # noqa: S608 - names of ours
        return int(connection.exec_driver_sql(asked).scalar_one())


# ---------------------------------------------------------------- the questions


def _tell_times(who: str, store: Store, end: float) -> None:
    one = partial(store.series, USED, {"node": "node-0", "gpu": "3"}, end - DAY, end, STEP_SECONDS)
    every = partial(store.series_of_gpus, USED, store.gpus(run="bench"), end - DAY, end, STEP_SECONDS)
    for what, ask in (("24 h of one GPU", one), ("24 h of 64 GPUs", every)):
        took = _timed(lambda ask=ask: msgspec.json.encode(ask()), time.process_time)  # type: ignore[misc]
        print(f"{who}: {what}, least, greatest and mean of {STEP_SECONDS} s: {_told(took)}")


def _on_postgres(store: Store, stack: ExitStack, end: float) -> None:
    """The same rows in a PostgreSQL."""
    server = PostgresServer({"shared_buffers": "128MB"})
    stack.callback(server.remove)
    server.start()
    other = Store.open(server.url)
    stack.callback(other.close)
    with store._database.reading() as source, other._database.writing() as target:
        for table in (nodes, runs, subjects, chunks, tiers):
            for some in source.execute(select(table)).mappings().partitions(500):
                target.execute(insert(table), [dict(row) for row in some])
    with other._database.reading() as connection:
        sizes = [text(f"SELECT pg_total_relation_size('{table}')") for table in ("chunks", "tiers")]
        used = sum(int(connection.execute(size).scalar_one()) for size in sizes)
    values = sum(one.bytes for one in store.sizes().history)
    print(f"oomwatch, PostgreSQL: {used / values:.2f} times the bytes of the blobs; SQLite:", end=" ")
    print(f"{_pages(store, ('chunks', 'tiers')) / values:.2f} times")
    _tell_times("PostgreSQL", other, end)


def _ask_prometheus(data: Path, end: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        port, config = free_port(), Path(name) / "none.yml"
        config.write_text("{}", encoding="ascii")
        arguments = [f"--config.file={config}", f"--storage.tsdb.path={data}", f"--web.listen-address=127.0.0.1:{port}",
                     "--storage.tsdb.retention.time=100y"]  # fmt: skip
        real = Prometheus("prometheus", arguments, Path(name), port)
        try:
            until("Prometheus to be ready", real._is_ready, seconds=300)
            _tell_prometheus(real, end)
        finally:
            real.stop()


def _tell_prometheus(real: Prometheus, end: float) -> None:
    process = psutil.Process(real.pid)
    span = {"start": f"{end - DAY}", "end": f"{end}", "step": f"{STEP_SECONDS}"}
    for what, which in (("24 h of one GPU", '{node="node-0",gpu="3"}'), ("24 h of 64 GPUs", "")):
        for aggregations in (("max",), ("min", "max", "avg")):

            def ask(which: str = which, aggregations: Sequence[str] = aggregations) -> None:
                for one in aggregations:
                    query = f"{one}_over_time({USED}{which}[{STEP_SECONDS}s])"
                    real.page(f"/api/v1/query_range?{urlencode(span | {'query': query})}")

            took = _timed(ask, lambda: sum(process.cpu_times()[:2]))
            print(f"Prometheus: {what}, {', '.join(aggregations)} of {STEP_SECONDS} s: {_told(took)}")


def _timed(ask: Callable[[], object], cpu: Callable[[], float]) -> Took:
    """Of five times the middle one; the first, which is not counted, finds nothing in memory."""
    ask()
    times = []
    for _ in range(5):
        began, spent = time.perf_counter(), cpu()
        ask()
        times.append(Took(time.perf_counter() - began, cpu() - spent))
    return sorted(times)[2]


def _told(took: Took) -> str:
    return f"{1000 * took.clock_seconds:.0f} ms, {1000 * took.cpu_seconds:.0f} ms of CPU"


if __name__ == "__main__":
    main()
