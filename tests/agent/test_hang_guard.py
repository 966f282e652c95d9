"""HangGuard: one that hangs costs its own answer and nothing else."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from oomwatch_agent.hang_guard import HangGuard

LIMIT_SECONDS = 0.1
DEADLINE_SECONDS = 10.0


class Gates:
    """Jobs that hang while their gate is shut."""

    def __init__(self) -> None:
        self._shut: dict[str, threading.Event] = {}
        self.asked: list[str] = []

    def shut(self, key: str) -> None:
        self._shut[key] = threading.Event()

    def open(self) -> None:
        for gate in self._shut.values():
            gate.set()
        self._shut = {}

    def job(self, key: str) -> str:
        self.asked.append(key)
        if key in self._shut:
            self._shut[key].wait(DEADLINE_SECONDS)
        return key.upper()


@pytest.fixture
def gates() -> Iterator[Gates]:
    gates = Gates()
    yield gates
    gates.open()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        threading.Event().wait(0.002)


def test_all_answers_come_when_nothing_hangs(gates: Gates) -> None:
    guard: HangGuard[str, str] = HangGuard(LIMIT_SECONDS)
    assert guard.ask(["a", "b", "a"], gates.job) == {"a": "A", "b": "B"}
    assert gates.asked == ["a", "b"]


def test_the_others_answer_though_the_first_hangs(gates: Gates) -> None:
    guard: HangGuard[str, str] = HangGuard(LIMIT_SECONDS)
    gates.shut("a")
    assert guard.ask(["a", "b", "c"], gates.job) == {"b": "B", "c": "C"}
    assert guard.hung() == {"a"}


def test_several_that_hang_cost_one_limit_and_not_one_each(gates: Gates) -> None:
    guard: HangGuard[str, str] = HangGuard(1.0)
    keys = [str(number) for number in range(8)]
    for key in keys:
        gates.shut(key)
    started_at = time.monotonic()
    assert guard.ask([*keys, "x"], gates.job) == {"x": "X"}
    assert time.monotonic() - started_at < 4.0


def test_one_that_hangs_is_not_asked_again_until_it_came_back(gates: Gates) -> None:
    guard: HangGuard[str, str] = HangGuard(LIMIT_SECONDS)
    gates.shut("a")
    for _ in range(3):
        guard.ask(["a", "b"], gates.job)
    assert gates.asked.count("a") == 1
    assert gates.asked.count("b") == 3
    gates.open()
    until(lambda: not guard.hung())
    assert guard.ask(["a"], gates.job) == {"a": "A"}


def test_what_a_job_raises_is_raised_to_whoever_asked() -> None:
    def fail(key: int) -> int:
        raise ValueError(f"no {key}")

    guard: HangGuard[int, int] = HangGuard(LIMIT_SECONDS)
    with pytest.raises(ValueError, match="no 1"):
        guard.ask([1], fail)
    assert guard.ask([1], lambda key: key + 1) == {1: 2}


def test_asking_nothing_answers_nothing() -> None:
    guard: HangGuard[int, int] = HangGuard(LIMIT_SECONDS)
    assert guard.ask([], lambda key: key) == {}
