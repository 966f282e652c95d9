"""What was missed of an agent at another server is read from a real database, and put where it belongs."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.house import GIB, START, Agent, House, hello, sample

from oomwatch import wire
from oomwatch.cluster.gaps import Gaps
from oomwatch.service.sessions import Session
from oomwatch.store.store import Batch, Entry, Store

GREETING = hello("n1")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


class Elsewhere:
    """A server of which the agent of n1 is not a client: it hears what it says, a second a reading, from its door."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.house = House()
        self.asked = 0
        self.gaps = Gaps(store, self._ask, self.house.service, 5.0, lambda: self.house.now)
        self.session = self.house.service.roster.stand_in(GREETING, Agent())
        self.gaps.take(self.session, GREETING, START)
        self.store.record(Batch(entries=(Entry(node="n1", session="s1", received_at=START, message=GREETING),)))

    async def _ask(self, fn: Callable[..., Any], *arguments: object) -> object:
        self.asked += 1
        return await asyncio.to_thread(fn, *arguments)

    def say(self, seqs: range, used_gib: float, *, is_heard: bool = True, session: Session | None = None) -> None:
        """The door stores what is said."""
        told = [sample(seq, used_gib, START + seq) for seq in seqs]
        entries = [Entry(node="n1", session="s1", received_at=one.at, message=one) for one in told]
        self.store.record(Batch(entries=tuple(entries)))
        for one in told if is_heard else ():
            self.house.now = one.at
            self.gaps.take(session or self.session, one, one.at)

    def fill(self) -> None:
        asyncio.run(self.gaps.fill())

    def used(self) -> list[int | None]:
        """The highest of each ten seconds, in GiB; and nothing where there is no reading."""
        card = self.house.service.engine.fleet.nodes["n1"].gpus["0"]
        peaks = [card.used_peaks.peak(START + at + 5, START + at + 5) for at in range(0, 60, 10)]
        return [None if one is None else round(one / GIB) for one in peaks]

    @property
    def now_gib(self) -> float:
        used_bytes = self.house.service.engine.fleet.nodes["n1"].gpus["0"].used_bytes
        return (used_bytes or 0) / GIB


def test_a_hole_is_filled_before_what_comes_after_it_is_taken(store: Store) -> None:
    there = Elsewhere(store)
    there.say(range(1, 10), 10)
    there.say(range(10, 40), 40, is_heard=False)
    there.say(range(40, 46), 20)
    assert there.now_gib == 10  # what came is held
    there.fill()
    assert there.asked == 0  # its door had not the time to store it
    there.say(range(46, 50), 20)
    there.fill()
    assert (there.now_gib, there.used()) == (20, [10, 40, 40, 40, 20, None])
    there.say(range(50, 60), 30)
    assert there.now_gib == 30  # nothing is held any more
    there.fill()
    assert there.asked == 1


def test_one_lost_reading_is_no_hole_nor_is_an_agent_that_said_nothing(store: Store) -> None:
    there = Elsewhere(store)
    there.say(range(1, 10), 10)
    there.say(range(11, 20), 20)
    late = sample(20, 30, START + 60)
    there.gaps.take(there.session, late, late.at)
    assert there.now_gib == 30


def test_an_agent_that_was_started_again_meanwhile_waits_for_nothing(store: Store) -> None:
    there = Elsewhere(store)
    there.say(range(1, 10), 10)
    there.say(range(40, 42), 20)
    assert there.now_gib == 10
    again = hello("n1", session="s2")
    session = there.house.service.roster.stand_in(again, Agent())
    there.gaps.take(session, again, START + 42)
    assert there.now_gib == 20
    there.gaps.take(session, sample(1, 30, START + 43), START + 43)
    assert there.now_gib == 30


def test_events_are_put_among_the_readings(store: Store) -> None:
    there = Elsewhere(store)
    there.say(range(1, 10), 10)
    step = wire.Event(seq=10, at=START + 20, run="r", body=wire.Step(step=1, step_seconds=5))
    store.record(Batch(entries=(Entry(node="n1", session="s1", received_at=step.at, message=step),)))
    there.say(range(11, 40), 40, is_heard=False)
    there.say(range(40, 50), 20)
    there.fill()
    assert [one.at for one in there.house.service.engine.fleet.runs["r"].steps] == [START + 20]
