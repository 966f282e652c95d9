"""The agent keeps to its CPU budget: slow reads become fewer, then looks, then what is not memory itself."""

import itertools
import time

import pytest
from tests.agent.test_sampler import FakeHost, FakeSource

from oomwatch import wire
from oomwatch_agent.budget import CALM_WINDOWS, STEPS, WINDOW_SECONDS, Budget, Spared
from oomwatch_agent.follower import NO_LIMIT
from oomwatch_agent.looker import Paces
from oomwatch_agent.sampler import BUDGET, Sampler
from oomwatch_agent.source import Reading
from oomwatch_agent.sparing import Sparing, budget_ratio

BURNT_SECONDS = 0.002  # of CPU, at each read


class Used:
    """A process that uses so much of a core, told once a second."""

    def __init__(self, budget: Budget, started_with: float = 0.0) -> None:
        self.budget = budget
        self.now = 100.0
        self.cpu_seconds = started_with
        budget.see(self.cpu_seconds, self.now)

    def go_on(self, ratio: float, windows: int) -> list[Spared]:
        """What was spared after each change."""
        changes = []
        for _ in range(round(windows * WINDOW_SECONDS)):
            self.now += 1.0
            self.cpu_seconds += ratio
            if self.budget.see(self.cpu_seconds, self.now):
                changes.append(self.budget.spared)
        return changes


def test_within_the_budget_nothing_is_spared() -> None:
    budget = Budget(0.01)
    assert Used(budget).go_on(0.009, 20) == []
    assert (budget.spared, budget.sentence()) == (Spared(), None)


def test_what_the_start_cost_does_not_count() -> None:
    assert Used(Budget(0.01), started_with=5.0).go_on(0.002, 5) == []


def test_process_tables_are_spared_first_and_looks_given_up_late() -> None:
    changes = Used(Budget(0.01)).go_on(0.05, len(STEPS) + 5)
    assert tuple(changes) == STEPS[1:]
    assert changes[0] == Spared(slow_reads=2)
    first_without_looks = next(one for one in changes if one.looks > 4)
    assert first_without_looks.slow_reads == STEPS[-1].slow_reads
    assert first_without_looks.other_sources > 1


def test_where_all_costs_several_times_as_much_looks_go_on() -> None:
    """As on a virtual machine that does nothing else: 12.3 ms a second, of which two looks take 2.6 and tables 2.5."""
    budget = Budget(0.01)
    used = Used(budget)
    for window in range(60):
        spared = budget.spared
        looks = {1: 2, 2: 1}.get(spared.looks, 0)  # in a second, of cards that stand still
        tables = 0.0025 if window % spared.slow_reads == 0 else 0.0
        used.go_on(0.0072 + 0.0013 * looks + tables, 1)
    assert budget.spared == Spared(looks=2, slow_reads=2)


def test_who_takes_five_times_as_much_spares_all_that_can_be_within_two_minutes() -> None:
    assert Used(Budget(0.01)).go_on(0.05, round(120 / WINDOW_SECONDS))[-1] == STEPS[-1]


def test_a_calm_minute_takes_one_step_back_and_a_busy_window_none() -> None:
    budget = Budget(0.01)
    used = Used(budget)
    used.go_on(0.05, 2)
    assert used.go_on(0.005, CALM_WINDOWS - 1) == []
    assert used.go_on(0.008, 1) == []  # within the budget, but near it
    assert used.go_on(0.005, CALM_WINDOWS) == [STEPS[1]]
    assert used.go_on(0.005, CALM_WINDOWS) == [STEPS[0]]


def test_no_budget_is_no_limit() -> None:
    assert Used(Budget(0)).go_on(0.9, 10) == []


def test_the_sentence_names_what_is_spared_and_the_remedy() -> None:
    budget = Budget(0.01)
    used = Used(budget)
    used.go_on(0.02, 1)
    assert "1 % of a core: processes are listed 2 times more seldom;" in (budget.sentence() or "")
    used.go_on(0.05, 1)
    assert "looks between samples are 2 times more seldom" in (budget.sentence() or "")
    used.go_on(0.05, 2 * len(STEPS))
    assert "processes are listed 6 times more seldom" in (budget.sentence() or "")
    assert "one sample of 10" in (budget.sentence() or "")
    assert "--cpu-budget" in (budget.sentence() or "")


# ---------------------------------------------------------------- what the sampler makes of it


def _sampler(*sources: FakeSource) -> Sampler:
    return Sampler(sources, answer_within_seconds=10.0, environment=lambda _: None)


def test_memory_is_read_at_every_sample_however_much_is_spared() -> None:
    card, host, logs = FakeSource(), FakeHost(), FakeSource("log a.log", gpus=0)
    logs.reading = Reading()
    sampler = _sampler(card, host, logs)
    sampler.collect(0.0, slow=True)
    sampler.spare(5, "it costs too much")
    for _ in range(20):
        sampler.collect(0.0, slow=False)
    assert (card.reads, host.reads) == (21, 21)
    assert logs.reads == 1 + 4
    sampler.close()


def test_what_is_spared_stands_among_the_sources_for_as_long() -> None:
    sampler = _sampler(FakeSource(), FakeHost())
    sampler.spare(1, "it costs too much")
    sampler.collect(0.0, slow=False)
    assert sampler.facts.sources[0] == wire.SourceFacts(name=BUDGET, state="waiting", detail="it costs too much")
    sampler.spare(1, None)
    sampler.collect(0.0, slow=False)
    assert [source.name for source in sampler.facts.sources] == ["nvml", "host"]
    sampler.close()


# ---------------------------------------------------------------- with sources that cost


class SlowCard(FakeSource):
    """A driver that takes the CPU for longer than it should."""

    def read(self, *, slow: bool) -> Reading:
        end = time.thread_time() + BURNT_SECONDS
        while time.thread_time() < end:
            pass
        return super().read(slow=slow)


def test_a_slow_driver_is_read_at_every_sample_and_all_else_is_spared(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="oomwatch_agent")
    card, logs, paces = SlowCard(), FakeSource("log a.log", gpus=0), Paces(1.0, 0.1)
    logs.reading = Reading()
    sampler = _sampler(card, FakeHost(), logs)
    budget = Budget(BURNT_SECONDS / 4)  # of a core, as a second passes from sample to sample
    sparing = Sparing(budget, paces, sampler, NO_LIMIT)
    seconds = itertools.count()

    def go_on(samples: int) -> list[bool]:
        """Whether each slow read, at every tenth sample, was one."""
        slow = []
        for _, now in zip(range(samples), seconds, strict=False):
            if now % 10 == 0:
                slow.append(sparing.may_be_slow())
            sampler.collect(float(now), slow=False)
            sparing.sampled(float(now))
        return slow

    go_on(150)
    assert (budget.spared, paces.ease) == (STEPS[-1], STEPS[-1].looks)
    assert card.reads == 150
    reads = logs.reads
    assert sum(go_on(60)) == 1
    assert (card.reads, logs.reads - reads) == (210, 6)
    assert sampler.facts.sources[0].name == BUDGET
    assert "CPU budget" in caplog.text
    sampler.close()


def test_the_budget_grows_with_the_samples_that_are_asked_for() -> None:
    assert budget_ratio(1.0, 1.0) == budget_ratio(1.0, 10.0) == 0.01
    assert budget_ratio(1.0, 0.1) == pytest.approx(0.1)
