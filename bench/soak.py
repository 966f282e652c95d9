"""Days of a server within minutes: memory must stay flat and the database bounded.

    python -m bench.soak [--nodes 64] [--days 3] [--every 10] [--keep 3h,8h,16h,16h]
    python -m bench.soak --nodes 128 --days 0.0417 --every 1          # an hour of 1,024 GPUs

A simulated clock drives the real service, journal and database (SQLite on disk) and the housekeeping between them; no
sockets, a browser that takes what it is told, and channels that only count. Eight GPUs a node; eight nodes a run, which
tells a step a minute and starts again under another name every six hours. Cards fill up for twenty minutes now and
then, so that alerts fire and end; agents start anew every eight hours. What is kept is kept for less than by default
(--keep: readings; of ten seconds; of a minute; events and alerts), so that days show what months would.
"""

import asyncio
import gc
import logging
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from bench._options import parser_of

from oomwatch import wire
from oomwatch.hub import Hub
from oomwatch.rulefile import read_rules
from oomwatch.service.journal import Journal
from oomwatch.service.service import Service
from oomwatch.service.sessions import Session
from oomwatch.settings import Settings
from oomwatch.store.archive import Archive
from oomwatch.store.store import Keep, Store
from oomwatch.units import parse_duration

ROOT = Path(__file__).resolve().parent.parent
GIB, MIB = 2**30, 2**20
HOUR = 3600
GPUS, RUN_NODES = 8, 8
FLUSH_SECONDS = round(Settings().flush_interval)
COMPACT_SECONDS, PRUNE_SECONDS, PASTS_SECONDS = 60, 600, 60
LISTED_SECONDS = 60  # how often processes are listed
STEP_SECONDS, RUN_SECONDS, SESSION_SECONDS = 60, 6 * HOUR, 8 * HOUR
FULL_EVERY_SECONDS, FULL_SECONDS = 2 * HOUR, 1200
START = 1_700_000_000 // HOUR * HOUR
CARD_BYTES = 80 * GIB


class Kept(NamedTuple):
    """Seconds."""

    readings: Keep
    events: float


class Point(NamedTuple):
    """How the server stands after some simulated hours."""

    hours: float
    rss_mib: float
    database_mib: float
    alerts_told: int
    open_alerts: int
    objects: int  # of Python's, that the garbage collector knows
    unstored_most: int  # messages that waited for the database at once
    unshown_most: int  # publications that waited for the browser at once


class Channels:
    """Counts what people would be sent."""

    def __init__(self) -> None:
        self.told = 0

    def offer(self, transitions: Sequence[wire.Transition]) -> None:
        self.told += len(transitions)

    def status(self) -> Sequence[wire.ChannelState]:
        return ()


class Peer:
    """An agent's end: it wants nothing."""

    def acknowledge(self, seq: int) -> None: ...
    def ask(self, request: wire.ActRequest) -> None: ...
    def dismiss(self, refused: wire.Refused | None) -> None: ...


class Machine:
    """One node and its agent."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.name = f"node-{number:03}"
        self._dice = random.Random(number)
        self._seq = 0
        self._session: Session | None = None
        self._peer = Peer()

    def speak(self, service: Service, now: int) -> None:
        """What its agent says in this second."""
        if self._session is None or (now + 600 * self._number) % SESSION_SECONDS == 0:
            self._start(service, now)
        assert self._session is not None
        self._seq += 1
        service.reception.take(self._session, self._sample(now))
        if self._number % RUN_NODES == 0 and now % STEP_SECONDS == 0:
            self._seq += 1
            service.reception.take(self._session, self._step(now))

    def _start(self, service: Service, now: int) -> None:
        """Its agent is started anew."""
        if self._session is not None:
            service.reception.leave(self._session, self._peer)
        self._seq, self._peer = 0, Peer()
        self._session = service.reception.admit(self._hello(now), self._peer, 0)

    def _run(self, now: int) -> str:
        return f"run-{self._number // RUN_NODES}-{now // RUN_SECONDS % 1000}"

    def _hello(self, now: int) -> wire.Hello:
        cards = tuple(
            wire.GpuFacts(gpu=str(gpu), uuid=f"{self.name}-{gpu}", name="H100", total_bytes=CARD_BYTES)
            for gpu in range(GPUS)
        )
        facts = wire.NodeFacts(gpus=cards, host=wire.HostFacts(memory_total_bytes=1000 * GIB))
        return wire.Hello(protocol=1, agent_version="soak", node=self.name, session=f"{self.name} since {now}",
                          sent_at=float(now), interval_seconds=10.0, facts=facts)  # fmt: skip

    def _sample(self, now: int) -> wire.Sample:
        listed = now % LISTED_SECONDS == 0
        gpus = tuple(self._gpu(gpu, now, listed=listed) for gpu in range(GPUS))
        host = wire.HostSample(memory_used_bytes=(400 + self._dice.randrange(20)) * GIB, oom_kill_total=0)
        return wire.Sample(seq=self._seq, at=float(now), gpus=gpus, host=host)

    def _gpu(self, gpu: int, now: int, *, listed: bool) -> wire.GpuSample:
        turn, since = divmod(now + 450 * self._number, FULL_EVERY_SECONDS)
        is_full = since < FULL_SECONDS and turn % GPUS == gpu
        used = 76 * GIB if is_full else (40 + now % STEP_SECONDS // 4 + gpu) * GIB + self._dice.randrange(100) * MIB
        processes = (wire.GpuProcess(pid=100 + gpu, used_bytes=used, name="ray::WorkerDict", run=self._run(now)),)
        return wire.GpuSample(gpu=str(gpu), used_bytes=used, utilization_ratio=self._dice.randrange(100) / 100,
                              power_watts=round(self._dice.gauss(600, 9), 3), temperature_celsius=60.0 + gpu,
                              ecc_uncorrected_total=0, processes=processes if listed else None)  # fmt: skip

    def _step(self, now: int) -> wire.Event:
        step = wire.Step(step=now % RUN_SECONDS // STEP_SECONDS, step_seconds=float(STEP_SECONDS), rollout_seconds=30.0,
                         response_length_mean_tokens=self._dice.gauss(1500, 100), tokens_total=5e5)  # fmt: skip
        return wire.Event(seq=self._seq, at=float(now), body=step, run=self._run(now))


class Site:
    """The server's parts and its machines, on a clock of their own."""

    def __init__(self, folder: Path, nodes: int, kept: Kept) -> None:
        self.now = START
        self._kept, self._folder = kept, folder
        self._store = Store.open(f"sqlite:///{folder / 'soak.db'}")
        self._hub, self._channels = Hub(), Channels()
        rules = read_rules(ROOT / "alerts.yaml").rules
        self._service = Service(rules, self._hub, self._channels, clock=self._clock, steady=self._clock)
        self._journal = Journal(Archive(self._store), _call, self._service.tell, flush_seconds=FLUSH_SECONDS)
        self._service.attach(self._journal)
        self._browser = self._hub.join(self._service.first_frame)
        self._machines = [Machine(number) for number in range(nodes)]
        self._unstored_most = self._unshown_most = 0

    def _clock(self) -> float:
        return float(self.now)

    async def live(self, seconds: int, every: int) -> None:
        """So much time passes; each machine reads every few seconds, not all in the same one."""
        for _ in range(seconds):
            self.now += 1
            for number, machine in enumerate(self._machines):
                if (self.now + number) % every == 0 or self.now % STEP_SECONDS == 0:
                    machine.speak(self._service, self.now)
            self._service.beat()
            self._unstored_most = max(self._unstored_most, self._journal.waiting()[0])
            self._unshown_most = max(self._unshown_most, self._browser.waiting())
            if self.now % FLUSH_SECONDS == 0:
                await self._journal.flush()
                while self._browser.waiting():
                    await self._browser.next()
            self._keep_up()

    def _keep_up(self) -> None:
        """As web/upkeep.py does."""
        if self.now % COMPACT_SECONDS == 0:
            _all_helpings(lambda: self._store.compact(self.now))
            self._store.checkpoint()
        if self.now % PASTS_SECONDS == 0:
            self._store.keep_pasts(self._service.engine.fleet.pasts.changed(), self.now)
        if self.now % PRUNE_SECONDS == 0:
            _all_helpings(lambda: self._store.prune(self.now, self._kept.events, readings=self._kept.readings))

    def point(self) -> Point:
        gc.collect()
        return Point(
            hours=(self.now - START) / HOUR,
            rss_mib=psutil.Process().memory_info().rss / MIB,
            database_mib=sum(file.stat().st_size for file in self._folder.iterdir()) / MIB,
            alerts_told=self._channels.told,
            open_alerts=len(self._service.engine.episodes()),
            objects=len(gc.get_objects()),
            unstored_most=self._unstored_most,
            unshown_most=self._unshown_most,
        )

    def close(self) -> None:
        """Let the database go. Raises AssertionError where the server had a defect of its own."""
        self._store.close()
        assert not self._service.defects.total, f"{self._service.defects.total} defects; the log has them"


async def _call(fn: Callable[..., Any], *arguments: object) -> object:
    return fn(*arguments)


def _all_helpings(work: Callable[[], bool]) -> None:
    while work():
        pass


def soak(folder: Path, nodes: int, hours: Sequence[float], every: int, kept: Kept) -> Iterator[Point]:
    """How the server stands after so many hours each, counted from the last point."""
    site = Site(folder, nodes, kept)
    try:
        for more in hours:
            asyncio.run(site.live(int(more * HOUR), every))
            yield site.point()
    finally:
        site.close()


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--days", type=float, default=3)
    parser.add_argument("--every", type=int, default=10, metavar="SECONDS", help="between two readings of a node")
    parser.add_argument("--keep", default="3h,8h,16h,16h", help="readings, of 10 s, of a minute, events")
    options = parser.parse_args()
    logging.getLogger("oomwatch").setLevel(logging.ERROR)  # thousands of alerts would be told between the rows
    fine, tens, minutes, events = (parse_duration(one) for one in options.keep.split(","))
    kept = Kept(Keep(fine, tens, minutes), events)
    spacing = max(min(1.0, options.days * 4), options.days * 24 / 18)  # of an hour every ten minutes
    hours = [spacing] * round(options.days * 24 / spacing)
    print(f"{'hours':>6}{'RSS, MiB':>10}{'database, MiB':>15}{'told':>8}{'open':>6}{'objects':>10}"
          f"{'unstored':>10}{'unshown':>9}{'CPU, s':>9}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for point in soak(Path(folder), options.nodes, hours, options.every, kept):
            print(f"{point.hours:6.2f}{point.rss_mib:10.1f}{point.database_mib:15.1f}{point.alerts_told:8}"
                  f"{point.open_alerts:6}{point.objects:10,}"
                  f"{point.unstored_most:10}{point.unshown_most:9}{time.process_time():9.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
