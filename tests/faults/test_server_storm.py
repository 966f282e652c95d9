"""A whole fleet comes back in the same moment: each is taken in, goes on where it was, and nothing is lost."""

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.programs import Program
from tests.server.house import hello, sample
from tests.server.running_server import DEADLINE_SECONDS

from oomwatch import wire
from oomwatch.store.store import Store
from oomwatch_agent.outbox import Outbox
from oomwatch_agent.pace import Backoff
from oomwatch_agent.uplink import Uplink

pytestmark = pytest.mark.acceptance
AGENTS = int(os.environ.get("OOMWATCH_STORM", "200"))  # 1,000 take half a minute of two cores
READINGS = 3


class Fleet:
    """The agents' own way to the server, as many times; `say` gives each one a reading."""

    def __init__(self, url: str) -> None:
        self.outboxes = [Outbox() for _ in range(AGENTS)]
        self._uplinks = [
            Uplink(url, outbox, lambda number=number: _hello(number), jitter=random.Random(number))  # type: ignore[misc]
            for number, outbox in enumerate(self.outboxes)
        ]
        self._at = time.time() - 10
        self._tasks = [asyncio.create_task(uplink.run()) for uplink in self._uplinks]

    def say(self) -> None:
        """Each a second after the one before: of two of the same millisecond one would be kept."""
        self._at += 1
        for outbox, uplink in zip(self.outboxes, self._uplinks, strict=True):
            outbox.add(sample(0, 40, self._at), time.monotonic())
            uplink.wake()

    async def until_stored(self) -> float:
        """Gives the seconds until everything is acknowledged."""
        began = time.monotonic()
        while any(outbox.acknowledged_seq < outbox.last_seq for outbox in self.outboxes):
            assert time.monotonic() - began < 4 * DEADLINE_SECONDS
            await asyncio.sleep(0.05)  # between two looks
        return time.monotonic() - began

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _hello(number: int) -> wire.Hello:
    return hello(f"n{number:05}", sent_at=time.time())


def test_all_agents_of_a_killed_server_come_back_and_lose_nothing(tmp_path: Path) -> None:
    async def story(server: Program) -> float:
        fleet = Fleet(server.agents)
        try:
            fleet.say()
            await fleet.until_stored()
            await asyncio.to_thread(server.kill)
            for _ in range(READINGS - 1):
                fleet.say()
            await asyncio.to_thread(server.start)
            return await fleet.until_stored()
        finally:
            await fleet.end()

    with Program(tmp_path) as server:
        seconds = asyncio.run(story(server))
        assert seconds < 4 * DEADLINE_SECONDS
        print(f"{AGENTS} agents were back, and had everything stored, {seconds:.1f} s after the server was started")
        server.stop()
        assert "Traceback" not in server.log()
    store = Store.open(f"sqlite:///{tmp_path / 'oomwatch.db'}")
    try:
        told = {node: len(list(samples)) for node, samples in _by_node(store).items()}
        assert told == {f"n{number:05}": READINGS for number in range(AGENTS)}
    finally:
        store.close()


def _by_node(store: Store) -> dict[str, list[wire.Sample]]:
    found: dict[str, list[wire.Sample]] = {}
    for node, one in store.recent_samples(0):
        found.setdefault(node, []).append(one)
    return found


def test_agents_that_lost_a_server_in_the_same_moment_do_not_come_back_in_one() -> None:
    """Of ten thousand no more than a quarter in any tenth of a second, and after some tries a hundred."""
    pauses = [Backoff(random.Random(number)) for number in range(10_000)]
    assert fullest_tenth([one.next_seconds() for one in pauses]) < 2500
    for _ in range(5):
        later = [one.next_seconds() for one in pauses]
    assert fullest_tenth(later) < 200


def fullest_tenth(moments: list[float]) -> int:
    return max(Counter(int(10 * at) for at in moments).values())
