"""How far one process goes without its sockets and its disk: decoding, judging and showing at 1,024 to 51,200 GPUs.

    python -m bench.wide [--gpus 1024,10240,20480,51200] [--seconds 20]

Frames of agents (those of bench.compare) are given straight to the service, by all shipped rules; every second it is
asked for what time changes and for what browsers are shown, for one browser that takes it; what would be stored is
thrown away. CPU of this process, so that a busy machine shows less. `tick`: from the beginning of the second's work
until the text for the browsers is there.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from bench._options import parser_of
from bench.compare.readings import GPUS, PERIOD_SECONDS, body, frame, hello, node_name
from bench.soak import Channels, Peer

from oomwatch import wire
from oomwatch.hub import Hub
from oomwatch.rulefile import read_rules
from oomwatch.service.journal import Journal
from oomwatch.service.service import Service
from oomwatch.service.sessions import Session
from oomwatch.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
START = 1_700_000_000.0
FLUSH_SECONDS, APART, WARM_SECONDS = round(Settings().flush_interval), 7, 5


class Cost(NamedTuple):
    taking_seconds: float  # of CPU, in a second of readings
    ticks: Sequence[float]  # seconds of CPU
    rss_mib: float


class Shredder:
    """An archive that keeps nothing."""

    def append(self, transitions: object) -> None: ...
    def record(self, entries: object) -> None: ...


class Site:
    """A service of so many nodes, on a clock of its own."""

    def __init__(self, nodes: int) -> None:
        self._now = START
        self._hub = Hub()
        rules = read_rules(ROOT / "alerts.yaml").rules
        self._service = Service(rules, self._hub, Channels(), clock=self._clock, steady=self._clock)
        self._journal = Journal(
            Shredder(), _call, self._service.tell, flush_seconds=FLUSH_SECONDS, entries_max=100 * nodes
        )
        self._service.attach(self._journal)
        names = [node_name(number) for number in range(nodes)]
        self._sessions = [self._service.reception.admit(hello(name, START), Peer(), 0) for name in names]
        self._browser = self._hub.join(self._service.first_frame)

    def _clock(self) -> float:
        return self._now

    async def live(self, seconds: int) -> Cost:
        """Every node reads once a second."""
        taking, ticks = list[float](), list[float]()
        for second in range(seconds):
            self._now += 1
            frames = [self._frame(second, number) for number in range(len(self._sessions))]
            taking.append(_cpu_of(lambda told=frames: self._take(told)))  # type: ignore[misc]
            ticks.append(_cpu_of(self._service.beat))
            if second % FLUSH_SECONDS == 0:
                await self._journal.flush()
            while self._browser.waiting():
                await self._browser.next()
        rss_mib = psutil.Process().memory_info().rss / 2**20
        return Cost(statistics.mean(taking[WARM_SECONDS:]), sorted(ticks[WARM_SECONDS:]), rss_mib)

    def _frame(self, second: int, number: int) -> tuple[Session, bytes]:
        rest = body((second + APART * number) % PERIOD_SECONDS)
        return self._sessions[number], frame(second + 1, self._now, rest)

    def _take(self, frames: Sequence[tuple[Session, bytes]]) -> None:
        for session, told in frames:
            message = wire.decode_agent(told)
            assert isinstance(message, wire.Sample)
            self._service.reception.take(session, message)


async def _call(fn: Callable[..., object], *arguments: object) -> object:
    return fn(*arguments)


def _cpu_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--gpus", default="1024,10240,20480,51200", help="sizes, in multiples of 8, in growing order")
    parser.add_argument("--seconds", type=int, default=20, help="simulated; the first five do not count")
    options = parser.parse_args()
    print(f"{'GPUs':>7}{'CPU a second, s':>17}{'us a GPU':>10}{'tick ms: median':>17}{'worst':>7}{'RSS, MiB':>10}")
    for gpus in (int(one) for one in options.gpus.split(",")):
        cost = asyncio.run(Site(gpus // GPUS).live(options.seconds))
        whole = cost.taking_seconds + statistics.mean(cost.ticks)
        print(f"{gpus:7,}{whole:17.3f}{1e6 * whole / gpus:10.1f}{1e3 * statistics.median(cost.ticks):17.1f}"
              f"{1e3 * cost.ticks[-1]:7.0f}{cost.rss_mib:10.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
