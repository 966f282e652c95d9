"""A leak that begins in a run which was healthy for long, in figures so tidy that they leave no noise to measure by."""

import pytest

from oomwatch.core.forecast import forecast

GIB = 2**30
CARD = 80 * GIB
WITHIN_STEPS = 40


def warned_at(flat_steps: int, rise_gib: float) -> tuple[int | None, int]:
    """At which step it is foretold, and at which the card is full."""
    peaks: list[float] = []
    warned: int | None = None
    while not peaks or peaks[-1] < CARD:
        peaks.append((60 + max(0, len(peaks) + 1 - flat_steps) * rise_gib) * GIB)
        found = forecast(peaks, CARD)
        if warned is None and found is not None and found.eta_steps <= WITHIN_STEPS:
            warned = len(peaks)
    return warned, len(peaks)


@pytest.mark.parametrize("flat_steps", [10, 22, 40])
@pytest.mark.parametrize("rise_gib", [0.45, 0.6, 0.9, 1.1, 1.3])
def test_a_leak_that_begins_late_is_foretold_in_time(flat_steps: int, rise_gib: float) -> None:
    warned, full = warned_at(flat_steps, rise_gib)
    assert warned is not None
    assert full - warned >= 6


def test_what_warms_up_and_levels_off_is_no_leak() -> None:
    peaks = [(72 - 12 * 0.9**step) * GIB for step in range(60)]
    assert not any(forecast(peaks[:end], CARD) for end in range(14, 60))
