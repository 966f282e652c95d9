"""Forecasts over steps: what rises towards the card's end is seen in time, and what only looks like it is not."""

import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from oomwatch.core.forecast import INTERVAL_Z, Forecast, Lengths, bytes_per_token, forecast
from oomwatch.core.trend import slope_interval, slopes

GIB = 2.0**30
CARD = 80 * GIB
CAP_TOKENS = 4000.0
Peak = Callable[[random.Random, int], tuple[float, float]]  # GiB and tokens of a step


def forecasts(peak: Peak, steps: int, seed: int = 0) -> Iterator[tuple[int, Forecast | None]]:
    """The forecast after each step, until the card is full."""
    dice, peaks, tokens = random.Random(seed), list[float](), list[float]()
    for step in range(steps):
        gib, length = peak(dice, step)
        if gib >= CARD / GIB:
            return
        peaks.append(gib * GIB)
        tokens.append(length)
        yield step, forecast(peaks[-60:], CARD, [Lengths(tokens[-60:], CAP_TOKENS)])


def false_alarms(peak: Peak, runs: int = 10, steps: int = 200) -> int:
    """Steps that have a forecast of the near future, as the step before had: the rule asks for two in a row."""
    held = [
        [one is not None and one.eta_steps <= 40 for _, one in forecasts(peak, steps, seed)] for seed in range(runs)
    ]
    return sum(before and later for run in held for before, later in pairwise(run))


def lead_steps(peak: Peak, seed: int = 0) -> int:
    """Steps from the first forecast that stands (ten steps without one end it) until the card is full."""
    told = list(forecasts(peak, 1000, seed))
    raised = [step for step, one in told if one is not None and one.eta_steps <= 60]
    begun = [later for before, later in pairwise([-100, *raised]) if later - before > 10]
    return told[-1][0] - begun[-1] if begun and told[-1][0] - raised[-1] <= 10 else 0


def lengthy(base_gib: float, noise_gib: float, leak_gib: float = 0.0, onset: int = 40) -> Peak:
    """Peaks that follow the lengths of the responses, and from `onset` on a leak."""

    def peak(dice: random.Random, step: int) -> tuple[float, float]:
        tokens = min(CAP_TOKENS, dice.gauss(1500, 200))
        leaked = leak_gib * max(0, step - onset)
        return base_gib + 0.004 * tokens + dice.gauss(0, noise_gib) + leaked, tokens

    return peak


def highest_so_far(peak: Peak) -> Peak:
    """An allocator that gives nothing back shows the highest peak so far."""
    highest = 0.0

    def sticky(dice: random.Random, step: int) -> tuple[float, float]:
        nonlocal highest
        gib, tokens = peak(dice, step)
        highest = gib if step == 0 else max(highest, gib)
        return highest, tokens

    return sticky


def packed(dice: random.Random, _step: int) -> tuple[float, float]:
    """98.5 % of the card whenever a batch reaches the length cap, and never more."""
    return min(78.8, dice.gauss(77, 1.5)), CAP_TOKENS


@pytest.mark.parametrize(
    "peak",
    [
        pytest.param(lengthy(50, 0.5), id="roomy"),
        pytest.param(lengthy(70, 0.3), id="tight"),
        pytest.param(lengthy(66, 2.0), id="noisy"),
        pytest.param(packed, id="packed"),
        pytest.param(highest_so_far(lengthy(66, 1.0)), id="an allocator that gives nothing back"),
        pytest.param(lambda _, step: (74 - 20 / (1 + step / 5), 0.0), id="warm-up that levels off"),
        pytest.param(lambda _, step: (75.0 if step > 30 else 60.0, 0.0), id="one jump"),
        pytest.param(lambda _, step: (60 + 10 * (step % 10 == 9), 0.0), id="a checkpoint every ten steps"),
        pytest.param(lambda _, step: (40 + 0.05 * step, 0.0), id="so slow that it takes hundreds of steps"),
    ],
)
def test_a_healthy_run_is_left_alone(peak: Peak) -> None:
    assert false_alarms(peak) <= 1


@pytest.mark.parametrize(
    ("peak", "at_least"),
    [
        pytest.param(lengthy(50, 0.5, leak_gib=0.16), 35, id="0.2 % a step"),
        pytest.param(lengthy(50, 0.5, leak_gib=0.32), 35, id="0.4 % a step"),
        pytest.param(lengthy(50, 2.0, leak_gib=0.32), 15, id="0.4 % a step in much noise"),
        pytest.param(lengthy(50, 0.5, leak_gib=0.8), 18, id="1 % a step"),
        pytest.param(lengthy(50, 0.5, leak_gib=2.0), 6, id="2.5 % a step"),
        pytest.param(highest_so_far(lengthy(50, 0.5, leak_gib=0.32)), 20, id="0.4 % a step, highest so far"),
    ],
)
def test_a_leak_is_seen_in_time(peak: Peak, at_least: int) -> None:
    leads = [lead_steps(peak, seed) for seed in range(8)]
    assert sorted(leads)[2] >= at_least


def test_a_leak_is_told_apart_from_the_lengths_that_hide_it() -> None:
    told = [one for _, one in forecasts(lengthy(50, 0.5, leak_gib=0.32), 100) if one]
    assert {one.reason for one in told} == {"drift"}
    assert told[-1].slope_bytes / GIB == pytest.approx(0.32, abs=0.08)


def growing(cap_gib: float) -> Peak:
    """Responses become twenty tokens longer with every step, up to the cap, where a step needs `cap_gib`."""

    def peak(dice: random.Random, step: int) -> tuple[float, float]:
        tokens = min(CAP_TOKENS, dice.gauss(1500, 150) + 20 * step)
        return cap_gib - 0.012 * (CAP_TOKENS - tokens) + dice.gauss(0, 0.3), tokens

    return peak


def test_growing_responses_that_will_not_fit_are_seen_in_time() -> None:
    told = [one for _, one in forecasts(growing(cap_gib=90), 300) if one]
    assert told[-1].reason == "length_growth"
    assert sorted(lead_steps(growing(cap_gib=90), seed) for seed in range(8))[2] >= 20


def test_growing_responses_that_fit_at_the_cap_are_no_danger() -> None:
    assert false_alarms(growing(cap_gib=77), runs=6) == 0


def test_the_interval_holds_the_truth_nine_times_in_ten() -> None:
    held = 0
    for seed in range(200):
        dice = random.Random(seed)
        values = [step + dice.gauss(0, 3) for step in range(12)]
        low, high = slope_interval(slopes(values), len(values), INTERVAL_Z)
        held += low <= 1.0 <= high
    assert 170 <= held <= 196


def test_an_eta_is_within_its_own_interval() -> None:
    told = [one for _, one in forecasts(lengthy(50, 0.5, leak_gib=0.32), 300) if one]
    assert all(one.eta_low_steps <= one.eta_steps <= one.eta_high_steps for one in told)


def test_what_a_token_costs_is_found_beneath_a_drift() -> None:
    dice = random.Random(1)
    tokens = [dice.gauss(1500, 200) for _ in range(30)]
    peaks = [3e6 * length + 1e7 * step for step, length in enumerate(tokens)]
    assert bytes_per_token(peaks, tokens) == pytest.approx(3e6, rel=0.05)
