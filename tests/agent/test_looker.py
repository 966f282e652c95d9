"""The thread that looks between samples: at the law's pace, and never for good in a driver that hangs."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from oomwatch import wire
from oomwatch_agent.looker import STUCK_SECONDS, Looker, Paces
from oomwatch_agent.source import Reading, Sight

GIB = 2**30
DEADLINE_SECONDS = 10.0


class Card:
    """A source that can look, and that hangs while its gate is shut."""

    name = "card"
    looks_an_interval = 4

    def __init__(self) -> None:
        self.used_bytes = GIB
        self.looks = 0
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> wire.NodeFacts:
        return wire.NodeFacts()

    def read(self, *, slow: bool) -> Reading:  # noqa: ARG002 - the seam's
        return Reading()

    def close(self) -> None:
        pass

    def look(self) -> list[Sight]:
        self.looks += 1
        used_bytes = self.used_bytes
        assert self.gate.wait(DEADLINE_SECONDS)
        return [Sight("0", used_bytes, 80 * GIB)]


class Still(Card):
    """Gives one and the same object while nothing changes."""

    def __init__(self) -> None:
        super().__init__()
        self._sights = [Sight("0", 60 * GIB, 80 * GIB)]

    def look(self) -> list[Sight]:
        self.looks += 1
        return self._sights


class Clock:
    """The real one, set forward by a test."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


Make = Callable[..., Looker]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Looker] = []

    def make_one(
        *sources: Card,
        hurry: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        paces: Paces | None = None,
    ) -> Looker:
        made.append(Looker(sources, paces or Paces(0.02, 0.002), hurry, clock=clock))
        return made[-1]

    yield make_one
    for one in made:
        one.close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.002)


def _told(looker: Looker, gib: int = 1) -> None:
    looker.told([Sight("0", gib * GIB, 80 * GIB)])


def test_nobody_looks_before_the_first_sample(make: Make) -> None:
    card = Card()
    looker = make(card)
    assert card.looks == 0
    _told(looker)
    _until(lambda: card.looks > 2)


def test_where_no_look_is_wanted_there_is_no_thread(make: Make) -> None:
    before = set(threading.enumerate())
    _told(make(Card(), paces=Paces(0.02, 0.02)))
    assert not set(threading.enumerate()) - before


def test_a_closed_one_looks_no_more(make: Make) -> None:
    before = set(threading.enumerate())
    card = Card()
    looker = make(card)
    _told(looker)
    _until(lambda: card.looks > 0)
    looker.close()
    _until(lambda: not set(threading.enumerate()) - before)


def test_a_look_that_hangs_is_left_behind_and_another_thread_goes_on(make: Make) -> None:
    card, clock = Card(), Clock()
    hurried = threading.Event()
    looker = make(card, hurry=hurried.set, clock=clock)
    _told(looker)
    card.gate.clear()
    looks = card.looks
    _until(lambda: card.looks > looks)
    stuck = card.gate
    card.gate = threading.Event()  # what comes now does not hang
    card.gate.set()
    clock.ahead += STUCK_SECONDS
    card.used_bytes = 30 * GIB
    _told(looker)
    assert hurried.wait(DEADLINE_SECONDS)
    stuck.set()


def test_what_a_late_look_saw_is_thrown_away(make: Make) -> None:
    card, clock = Card(), Clock()
    looker = make(card, clock=clock)
    _told(looker)
    card.gate.clear()
    card.used_bytes = 70 * GIB
    looks = card.looks
    _until(lambda: card.looks > looks)
    stuck, card.gate = card.gate, threading.Event()
    card.gate.set()
    clock.ahead += STUCK_SECONDS
    card.used_bytes = GIB
    _told(looker)
    stuck.set()
    looks = card.looks
    _until(lambda: card.looks > looks + 2)
    assert looker.told([Sight("0", GIB, 80 * GIB)]) == {}


def test_a_peak_that_looks_see_again_after_a_lower_sample_is_told(make: Make) -> None:
    """The card stands as it stood, and gives the same object; the sample fell into a trough."""
    card = Still()
    looker = make(card)
    _told(looker, 60)
    _until(lambda: card.looks > 2)
    assert looker.told([Sight("0", GIB, 80 * GIB)]) == {}, "no more than the sample before"
    looks = card.looks
    _until(lambda: card.looks > looks + 1)
    assert looker.told([Sight("0", GIB, 80 * GIB)])["0"].used_bytes == 60 * GIB


def test_an_errand_is_done_at_its_time_and_after_an_interval_again(make: Make) -> None:
    looker = make(Card())
    _told(looker)
    done: list[str] = []
    looker.expect(time.monotonic(), lambda: done.append(threading.current_thread().name))
    _until(lambda: len(done) >= 2)
    assert set(done) == {"oomwatch looks"}
    looker.expect(None)


def test_an_errand_is_done_at_its_time_where_the_thread_would_sleep_longer(make: Make) -> None:
    card, done = Card(), threading.Event()
    card.looks_an_interval = 1  # the next sample comes before the next look
    looker = make(card, paces=Paces(3600.0, 0.1))
    _told(looker)
    looker.expect(time.monotonic() + 0.05, done.set)
    assert done.wait(DEADLINE_SECONDS)


def test_a_thread_that_follows_one_that_was_left_behind_hears_of_an_errand_too(make: Make) -> None:
    card, done = Card(), threading.Event()
    card.looks_an_interval = 1
    looker = make(card, paces=Paces(3600.0, 0.1))
    _told(looker)
    looker.relieve()
    looker.expect(time.monotonic() + 0.05, done.set)
    assert done.wait(DEADLINE_SECONDS)


def test_while_an_errand_hangs_another_thread_looks(make: Make) -> None:
    card, entered, leave = Card(), threading.Event(), threading.Event()
    looker = make(card)
    _told(looker)

    def hang() -> None:
        entered.set()
        assert leave.wait(DEADLINE_SECONDS)

    looker.expect(time.monotonic(), hang)
    assert entered.wait(DEADLINE_SECONDS)
    looker.relieve()
    looks = card.looks
    _until(lambda: card.looks > looks + 1)
    leave.set()
