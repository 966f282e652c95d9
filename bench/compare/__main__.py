"""What watching costs, in one run, side by side, at four sizes.

    python -m bench.compare [--gpus 8,128,1024,10240] [--browsers 50] [--seconds 20] [--firing 12] [--sides ...]
                            [--server-python PATH]

  oomwatch     the server: all shipped rules, history, and browsers that watch (--browsers, or fewer)
  prometheus   Debian's Prometheus, scrape and evaluation each second, and Alertmanager, by those of the same rules that
               it can judge, as `oomwatch rules export` writes them; nobody watches
  plain        the same by rules as people write them by hand, which begin anew at every trough of a step
  watched      as prometheus, and as many people as browsers watch the fleet by it, as Grafana asks (`viewers`)

Both get the same values of the same GPUs each second from programs that stand for agents and exporters, whose own cost
is not counted; agents list processes every ten seconds, as real ones do. First nothing happens for --seconds, of which
the CPU is told (user and system time of the processes); then a GPU fills up each second, for --firing seconds, and each
counts from the moment it is full to the webhook. Here nothing looks at a card between two readings, as real agents do:
of both sides half a second is the wait for the next one.

`tick` is the server's work of each second: of ours, from its beginning to its arrival at a browser; of theirs, the
judging of all rules, as Prometheus tells it.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from bench._options import parser_of
from bench.compare.filling import Fill
from bench.compare.programs import Helper, Taken, add_server_python, helping, taken
from bench.compare.readings import GPUS
from bench.compare.sides import Side, ours, theirs
from bench.detection.receiver import Card, Told, receiving

SIDES = ["oomwatch", "prometheus", "plain", "watched"]
WATCHED_SIDES = ["oomwatch", "watched"]
WATCHED = 1024  # GPUs, to which --browsers belongs
LATEST_SECONDS = 10.0  # an alert that is not told by then is not counted


class Row(NamedTuple):
    gpus: int
    side: str
    browsers: int
    taken: Taken
    ticks: Sequence[float]  # seconds, in order; of theirs the median and p99
    delays: Sequence[float]  # seconds, in order
    filled: int


def measure(side: str, gpus: int, told: Told, options: argparse.Namespace) -> Row:
    """One side at one size."""
    name, browsers = f"{side}-{gpus}", max(1, round(min(gpus / WATCHED, 1) * options.browsers))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
        started = _started(side, Path(folder), gpus // GPUS, f"{told.url}/{name}", options.server_python)
        at_work = stack.enter_context(started)
        watching = stack.enter_context(_watching(side, at_work, browsers if options.browsers else 0))
        time.sleep(options.settle)
        begun = len(watching.lines) if watching else 0
        quiet = taken(at_work.processes, lambda: time.sleep(options.seconds))
        at_work.load.tell(f"fill {options.firing}")
        time.sleep(options.firing)
        filled = [msgspec.json.decode(line, type=Fill) for line in list(at_work.load.lines)]
        told.wait_for([name], len(filled), LATEST_SECONDS)
        at = told.of(name)
        delays = [at[card] - one.at for one in filled if (card := Card(one.node, one.gpu)) in at]
        ticks = [float(line) for line in watching.lines[begun:]] if watching else []
        ticks = ticks or _judging_seconds(at_work)
        return Row(gpus, side, browsers if watching else 0, quiet, sorted(ticks), sorted(delays), len(filled))


def _started(
    side: str, folder: Path, nodes: int, hook: str, python: str | None
) -> contextlib.AbstractContextManager[Side]:
    if side == "oomwatch":
        return ours(folder, nodes, hook, python=python)
    return theirs(nodes, hook, plain=side == "plain")


@contextlib.contextmanager
def _watching(name: str, side: Side, count: int) -> Iterator[Helper | None]:
    """Those who watch: our page, or Prometheus where that is asked for."""
    if not count or name not in WATCHED_SIDES:
        yield None
        return
    module = "browsers" if side.server else "viewers"
    with helping(module, "--port", str(side.port), "--count", str(count)) as watching:
        yield watching


def _judging_seconds(side: Side) -> list[float]:
    """The median and the p99 of how long Prometheus judges; it tells of itself what it would tell any other one."""
    if side.prometheus is None:
        return []
    page = side.prometheus.page("/metrics")
    name = 'prometheus_rule_group_duration_seconds{quantile="%s"}'
    wanted = [name % quantile for quantile in ("0.5", "0.99")]
    return [float(line.split()[-1]) for line in page.splitlines() if line.startswith(tuple(wanted))]


def report(rows: Sequence[Row]) -> None:
    """A table for docs/reference/performance.md."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} over the last five minutes\n")
    print("| GPUs | side | CPU, of a core | a GPU, µs a second | of Prometheus' | RSS, MiB | tick p50, p99, ms"
          " | to the webhook: median, worst, s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        other = next((one.taken.cores for one in rows if (one.gpus, one.side) == (row.gpus, "prometheus")), None)
        share = f"{row.taken.cores / other:.2f}" if other and row.side != "prometheus" else ""
        cells = [
            f"{row.gpus:,}",
            f"{row.side}, {row.browsers} browsers" if row.browsers else row.side,
            f"{row.taken.cores:.3f}",
            f"{1e6 * row.taken.cores / row.gpus:.0f}",
            share,
            f"{row.taken.rss_mib:.0f}",
            f"{1e3 * _at(row.ticks, 0.5):.1f}, {1e3 * _at(row.ticks, 0.99):.1f}" if row.ticks else "",
            _delays(row),
        ]
        print(f"| {' | '.join(cells)} |")


def _delays(row: Row) -> str:
    if not row.delays:
        return ""
    missing = f" ({row.filled - len(row.delays)} untold)" if row.filled > len(row.delays) else ""
    return f"{statistics.median(row.delays):.2f}, {row.delays[-1]:.2f}{missing}"


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--gpus", default="8,128,1024,10240", help="sizes, in multiples of 8")
    parser.add_argument("--sides", default=",".join(SIDES), help="which, in this order")
    parser.add_argument("--browsers", type=int, default=50, help="that watch from 1,024 GPUs on; fewer where less")
    parser.add_argument("--seconds", type=float, default=20, help="of quiet, in which CPU is counted")
    parser.add_argument("--settle", type=float, default=12, help="seconds before")
    parser.add_argument("--firing", type=int, default=12, metavar="SECONDS", help="in which a GPU a second fills up")
    add_server_python(parser)
    options = parser.parse_args()
    rows = []
    with receiving() as told:
        for gpus in (int(one) for one in options.gpus.split(",")):
            for side in options.sides.split(","):
                rows.append(measure(side, gpus, told, options))
                print(rows[-1].side, rows[-1].gpus, f"{rows[-1].taken.cores:.3f}", flush=True)
    report(rows)


if __name__ == "__main__":
    main()
