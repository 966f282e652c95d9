"""Nothing grows without bound: every queue held full, and what it takes in memory measured."""

import asyncio
import tracemalloc
from collections.abc import Callable

import pytest
from tests.server.house import GIB, START, House, hello

from oomwatch import wire
from oomwatch.core.memo import Keeping
from oomwatch.core.names import NAMES_MAX, RunNames
from oomwatch.core.runrecord import MARKERS_MAX, PRINTERS_MAX, RunRecord
from oomwatch.hub import QUEUE_MAX, Hub, TooSlowError
from oomwatch.service.journal import ENTRIES_MAX, Entry

MIB = 2**20
TRIED = 3000  # of the messages that may wait; what they take is reckoned up


def mib_of(work: Callable[[], object]) -> float:
    """What is left in memory of it, while its result is held."""
    tracemalloc.start()
    try:
        held = work()
        size = tracemalloc.get_traced_memory()[0] / MIB
        del held
        return size
    finally:
        tracemalloc.stop()


def reading(seq: int) -> wire.Sample:
    """As a node of eight GPUs tells each second, decoded from its frame."""
    cards = tuple(
        wire.GpuSample(gpu=str(gpu), used_bytes=40 * GIB + seq, utilization_ratio=0.5, power_watts=400.0,
                       temperature_celsius=60.0)
        for gpu in range(8)
    )  # fmt: skip
    told = wire.Sample(seq=seq, at=START + seq, gpus=cards, host=wire.HostSample(memory_used_bytes=100 * GIB + seq))
    message = wire.decode_agent(wire.encode(told))
    assert isinstance(message, wire.Sample)
    return message


def test_a_database_that_takes_nothing_for_long_costs_a_bounded_memory_and_loses_nothing() -> None:
    house = House(entries_max=TRIED)
    session, agent = house.connect(hello(gpus=8))
    house.shelf.is_full = True

    def fill() -> House:
        for seq in range(1, TRIED + 1001):
            house.journal.keep(Entry(session, seq, START + seq, reading(seq), 1000))
        return house

    size = mib_of(fill) * ENTRIES_MAX / TRIED
    print(f"{ENTRIES_MAX} messages of nodes with 8 GPUs: {size:.0f} MiB")
    assert house.journal.waiting()[0] == TRIED
    assert house.journal.refused_total == 1  # what follows waits with it
    assert size < 400
    house.shelf.is_full = False
    house.flush()
    assert agent.acknowledged[-1] == session.queued_seq == TRIED - 1  # and the hello
    assert agent.dismissed == [None]


def test_a_browser_that_takes_nothing_holds_so_many_publications_and_no_more() -> None:
    hub = Hub()
    slow = hub.join(lambda: wire.Snapshot(at=0, server=wire.ServerInfo(version="1", started_at=0)))
    for number in range(10 * QUEUE_MAX):
        hub.publish([wire.Tick(at=float(number))])
        assert slow.waiting() <= QUEUE_MAX
    with pytest.raises(TooSlowError):
        asyncio.run(slow.next())


def test_a_run_that_makes_up_markers_and_processes_is_kept_within_bounds() -> None:
    run = RunRecord("r", START, Keeping())
    for number in range(2 * PRINTERS_MAX):
        run.mark_cycle("resume_kv_cache", START + number, ("n", number))
        run.mark_cycle(f"made up {number}", START + number, ("n", 1))
    assert len(run.cycle_marks) == MARKERS_MAX
    assert len(run.cycle_totals["resume_kv_cache"]) == PRINTERS_MAX
    run.mark_cycle("resume_kv_cache", START, ("n", 0))
    assert run.cycles_total() == 2


def test_names_that_stand_for_runs_are_forgotten_at_last() -> None:
    names = RunNames()
    for number in range(NAMES_MAX + 10):
        names.learn(f"session job {number}", f"run-{number}")
    assert names.of("session job 0") == "session job 0"
    assert names.of(f"session job {NAMES_MAX + 9}") == f"run-{NAMES_MAX + 9}"
