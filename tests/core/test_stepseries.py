"""Which series of peaks are followed from step to step."""

from oomwatch import wire
from oomwatch.core.envelope import Extremes
from oomwatch.core.peaks import Figures, GpuStep, PhaseMemory
from oomwatch.core.steps import StepRecord
from oomwatch.core.stepseries import WHOLE_STEP, by_phase


def step(peak: float, **phases: float) -> GpuStep:
    record = StepRecord(0.0, wire.Step(step=9, step_seconds=60.0), segment=0, usual=True, backlog=False)
    extremes = {name: Extremes(level, level) for name, level in phases.items()}
    return GpuStep.of(record, Figures(peak_bytes=peak), phases=PhaseMemory.of(extremes))


def test_phases_that_hold_the_peak_of_their_step_are_followed_alone() -> None:
    assert set(by_phase([step(60.0, rollout=60.0, update_actor=50.0)] * 8)) == {"rollout", "update_actor"}


def test_where_steps_peak_in_a_phase_too_short_to_be_cut_whole_steps_are_followed_too() -> None:
    told = by_phase([step(60.0, rollout=60.0)] * 10 + [step(61.0 + more, rollout=60.0) for more in range(8)])
    assert [peak for peak, _ in told[WHOLE_STEP]] == [60.0] * 10 + [61.0 + more for more in range(8)]
    assert set(told) == {"rollout", WHOLE_STEP}


def test_where_no_phase_is_known_whole_steps_are_followed() -> None:
    assert set(by_phase([step(60.0)] * 3)) == {WHOLE_STEP}
