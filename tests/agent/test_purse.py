"""What the reading of logs may cost: nothing of what the rest of the agent needs."""

import pytest

from oomwatch_agent.purse import GIFT_SECONDS, HUNGRY_POLLS, POLL_SECONDS, RATIO, Purse, Spender

BUDGET = 0.01
A_SECOND = RATIO * BUDGET  # of CPU


class Machine:
    """Time and CPU as a test lets them pass."""

    def __init__(self, ratio: float = BUDGET) -> None:
        self.now = self.cpu = 0.0
        self.purse = Purse(ratio, cpu=lambda: self.cpu, clock=lambda: self.now)
        self.spender = Spender(self.purse)

    def read(self, *, helping: float, old: bool = True, others: float = 0.0) -> float:
        """A second later, with so much CPU used by `others`: read helpings; the CPU that they took together."""
        self.now += 1.0
        self.cpu += others
        return self.read_by(self.spender, helping=helping, old=old)

    def read_by(self, spender: Spender, *, helping: float, old: bool = True) -> float:
        """At this moment: one source reads helpings; the CPU that they took together."""
        began_at = self.cpu
        spender.begin()
        while spender.allows(old=old) and self.cpu - began_at < 1.0:
            self.cpu += helping
        return self.cpu - began_at

    def spend_the_gift(self) -> None:
        """All but a second's worth, which stays as a cushion."""
        for _ in range(300):
            self.read(helping=0.001)


def test_old_lines_are_read_with_what_the_rest_of_the_agent_leaves_of_the_budget() -> None:
    machine = Machine()
    machine.spend_the_gift()
    before = machine.cpu
    taken = sum(machine.read(helping=0.001, others=0.004) for _ in range(600))
    assert machine.cpu - before == pytest.approx(600 * A_SECOND, rel=0.01)
    assert taken == pytest.approx(600 * (A_SECOND - 0.004), rel=0.02)


def test_dear_helpings_are_paid_for_by_waiting() -> None:
    machine = Machine()
    machine.spend_the_gift()
    taken = [machine.read(helping=0.03) for _ in range(100)]
    assert sum(taken) == pytest.approx(100 * A_SECOND, rel=0.1)
    assert taken.count(0.0) > 60


def test_at_the_start_more_is_given_once_and_counted_apart() -> None:
    machine = Machine()
    assert machine.purse.given_seconds == 0.0
    assert machine.read(helping=0.001) == pytest.approx(POLL_SECONDS, abs=0.002), "but not all of it in one reading"
    machine.spend_the_gift()
    before = machine.cpu
    for _ in range(100):
        machine.read(helping=0.001)
    assert machine.purse.given_seconds == pytest.approx(GIFT_SECONDS * A_SECOND, abs=1.1 * A_SECOND)
    assert machine.cpu - before < 101 * A_SECOND + 0.002


def test_where_the_rest_takes_it_all_old_lines_are_read_now_and_then() -> None:
    machine = Machine()
    machine.spend_the_gift()
    taken = [machine.read(helping=0.001, others=0.05) for _ in range(10 * (HUNGRY_POLLS + 1))]
    assert 8 <= sum(took > 0 for took in taken) <= 11
    assert sum(taken) < 0.03


def test_each_of_several_sources_has_a_hunger_of_its_own() -> None:
    machine = Machine()
    machine.spend_the_gift()
    without_old_lines, also_huge = Spender(machine.purse), Spender(machine.purse)
    taken = list[tuple[float, float]]()
    for _ in range(10 * (HUNGRY_POLLS + 1)):
        first = machine.read(helping=0.001, others=0.05)
        without_old_lines.begin()
        taken.append((first, machine.read_by(also_huge, helping=0.001)))
        assert machine.spender.is_held_back
    for source in zip(*taken, strict=True):
        assert 8 <= sum(took > 0 for took in source) <= 11


def test_where_new_lines_take_all_the_time_old_ones_are_read_now_and_then() -> None:
    machine = Machine(ratio=0.5)
    taken = list[float]()
    for _ in range(2 * (HUNGRY_POLLS + 1)):
        machine.now += 1.0
        machine.spender.begin()
        while machine.spender.allows(old=False):
            machine.cpu += 0.01
        began_at = machine.cpu
        while machine.spender.allows(old=True):
            machine.cpu += 0.001
        taken.append(machine.cpu - began_at)
        assert not machine.spender.is_held_back, "there is CPU left"
    assert sum(took > 0 for took in taken) == 2


def test_new_lines_are_read_at_once_within_their_own_bound_and_old_ones_pay_for_it() -> None:
    machine = Machine()
    machine.spend_the_gift()
    assert machine.read(helping=0.01, old=False) == pytest.approx(POLL_SECONDS, abs=0.02)
    assert machine.read(helping=0.01) == 0.0
    assert machine.spender.is_held_back


def test_what_was_saved_up_or_is_owed_has_a_bound() -> None:
    machine = Machine()
    machine.spend_the_gift()
    machine.now += 3600.0
    assert machine.read(helping=0.0001) < 6 * A_SECOND
    for _ in range(5):
        machine.read(helping=0.01, old=False)
    quiet = [machine.read(helping=0.001) for _ in range(8)]
    assert sum(quiet) > 0, "what is owed is forgotten after five seconds' worth"


def test_without_a_budget_there_is_no_limit() -> None:
    machine = Machine(ratio=0.0)
    assert machine.read(helping=0.1) >= 1.0
    assert machine.purse.given_seconds == 0.0
