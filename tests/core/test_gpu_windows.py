"""Readings that are gathered are found as if each had been put into the windows at once."""

import random

import pytest

from oomwatch import wire
from oomwatch.core.gpuwindows import GpuWindows
from oomwatch.core.peaks import GpuStep
from oomwatch.core.phases import Span
from oomwatch.core.steps import StepRecord

START = 1_000_000.0
GIB = float(2**30)


def some_readings(seed: int) -> list[tuple[float, float]]:
    """Mostly a second apart; some in between, some late, some after a pause; levels that creep and leap."""
    dice, at, level = random.Random(seed), START + random.Random(seed).random() * 300, 40.0
    found = list[tuple[float, float]]()
    for _ in range(900):
        at += dice.choice((0.1, 0.999, 1.0, 1.0, 1.0, 1.001, dice.choice((2.5, 30.0))))
        level += dice.choice((0.0, 0.0, 0.0, 0.002, -0.01, dice.choice((-20.0, 20.0, 0.5))))
        late = dice.choice((0.0,) * 9 + (0.7, dice.choice((12.0, 400.0))))
        found.append((at - late, round(level * GIB)))
    return found


def cut(windows: GpuWindows, start: float, end: float) -> GpuStep:
    record = StepRecord(at=end, step=wire.Step(step=1, step_seconds=end - start), segment=0, usual=True, backlog=False)
    middle = (start + end) / 2
    spans = [Span(start, middle, "rollout", 1, "mark"), Span(middle, end, "update_actor", 1, "mark")]
    return windows.steps.cut(record, spans, None)


@pytest.mark.parametrize("seed", range(40))
def test_gathered_readings_are_found_as_if_each_had_been_put_in_at_once(seed: int) -> None:
    gathering, at_once = GpuWindows(), GpuWindows()
    dice = random.Random(-seed)
    readings = some_readings(seed)
    for number, (at, used_bytes) in enumerate(readings):
        assert gathering.add(at, used_bytes) == at_once.add(at, used_bytes)
        assert at_once.blocks.open is not None  # whoever looks has all of them put in
        if number % 300 == 299:
            assert repr(cut(gathering, at - 200, at)) == repr(cut(at_once, at - 200, at))  # NaN and all
        if dice.random() < 0.003:
            moved = dice.choice((-3600.0, -7.0, 7.0))
            gathering.shift(moved)
            at_once.shift(moved)
        if dice.random() < 0.02:
            start = at - dice.random() * 600
            assert gathering.used_peaks.peak(start, at) == at_once.used_peaks.peak(start, at)
    assert gathering.blocks.open == at_once.blocks.open
    assert gathering.blocks.closed() == at_once.blocks.closed()
    assert repr(cut(gathering, START, readings[-1][0])) == repr(cut(at_once, START, readings[-1][0]))


def test_the_first_reading_of_a_minute_says_so() -> None:
    windows = GpuWindows()
    told = [at for at in range(60, 300) if windows.add(float(at), GIB)]
    assert told == [120, 180, 240]


def test_the_steps_of_another_run_begin_with_nothing_that_was_gathered() -> None:
    windows = GpuWindows()
    for second in range(8):
        windows.add(START + second, 70 * GIB)
    windows.begin_other_steps()
    windows.add(START + 8, 30 * GIB)
    assert cut(windows, START, START + 9).peak_bytes == 30 * GIB
    assert windows.used_peaks.peak(START, START + 9) == 70 * GIB  # of the card, whoever works on it
