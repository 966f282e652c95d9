"""The worst minutes of a large site: all agents come back to a server that was killed, and every card alerts at once.

    python -m bench.storm [--gpus 10240] [--browsers 1] [--settle 15] [--seconds 60]

Load and server are those of bench.compare. The server is killed in the quiet and started again on its database, while
its agents try to connect. Then every card fills up between two readings, and each has an alert (of a rule without a
hold time; half a minute later a second one, of the shipped rule). `tick` is the time from the beginning of the
server's work of a second to its arrival at a browser.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from bench._options import parser_of
from bench.compare.programs import add_server_python, helping, taken
from bench.compare.readings import GPUS
from bench.compare.sides import Side, ours
from bench.detection.receiver import receiving
from tests.prometheus.servers import until

BACK_SECONDS = 600.0


def watched(side: Side, what: str, browsers: int, settle_seconds: float, seconds: float) -> None:
    """What some time costs, and how late each second's tick is. `what`: "quiet", or "full", which fills every card."""
    assert side.server is not None
    with helping("browsers", "--port", str(side.server.port), "--count", str(browsers)) as helper:
        time.sleep(settle_seconds)
        if what == "full":
            side.load.tell("fill all")
        begun = len(helper.lines)
        cost = taken([psutil.Process(side.server.program.pid)], lambda: time.sleep(seconds))
        seen = sorted(float(line) for line in helper.lines[begun:])
        print(f"{what:10}{cost.cores:6.2f} cores,{cost.rss_mib:6.0f} MiB, {_spread(seen)}", flush=True)


def _spread(ordered: Sequence[float]) -> str:
    if not ordered:
        return "no tick"
    middle, late = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"tick median {1e3 * middle:.0f} ms, p99 {1e3 * late:.0f}, of {len(ordered)}"


def come_back(side: Side, nodes: int) -> None:
    """Kill the server, start it again, and wait for all its agents."""
    server = side.server
    assert server is not None
    server.program.kill()
    began = time.monotonic()
    server.start()
    ready, ready_at = time.monotonic() - began, time.time()

    def are_all_back() -> bool:
        with contextlib.suppress(OSError):
            # What the database remembers counts as heard when the server was started, and is not meant.
            heard_at = [float(node["last_seen_at"]) for node in server.get("/api/v1/nodes")]
            return sum(at > ready_at for at in heard_at) >= nodes
        return False

    until("all agents to be back", are_all_back, seconds=BACK_SECONDS)
    back = time.monotonic() - began
    process = psutil.Process(server.program.pid)
    times, rss_mib = process.cpu_times(), process.memory_info().rss / 2**20
    print(f"restart   ready after {ready:.1f} s, all agents back after {back:.1f} s,"
          f" {times.user + times.system:.1f} s of CPU, {rss_mib:.0f} MiB")  # fmt: skip


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--gpus", type=int, default=10240, help="in multiples of 8")
    parser.add_argument("--browsers", type=int, default=1)
    parser.add_argument("--settle", type=float, default=15, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=60, help="of quiet, and of the storm")
    parser.add_argument("--told", type=float, default=60, metavar="SECONDS", help="to wait for the webhook after it")
    add_server_python(parser)
    options = parser.parse_args()
    nodes = options.gpus // GPUS
    print(f"{options.gpus:,} GPUs; {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} over the last five minutes")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        told = stack.enter_context(receiving())
        side = stack.enter_context(ours(Path(folder), nodes, f"{told.url}/storm", python=options.server_python))
        watched(side, "quiet", options.browsers, options.settle, options.seconds)
        come_back(side, nodes)
        began = time.monotonic() + options.settle
        watched(side, "full", options.browsers, options.settle, options.seconds)
        told.wait_for(["storm"], options.gpus, options.told)
        first = sorted(told.of("storm").values())
        print(
            f"webhook   told of {len(first):,} cards, the last {first[-1] - began:.0f} s after"
            if first
            else "told of none"
        )


if __name__ == "__main__":
    main()
