"""A live run beside its estimate: what the next estimate learns."""

import pytest
from tests.plan.memory.test_verl import GRPO, estimate

from oomwatch.plan.memory import Estimate, corrected, correction_of

PLAN = estimate(GRPO)
UPDATE = "update_actor"


def expected(of: Estimate, phase: str) -> int:
    found = of.phase(phase)
    assert found is not None
    return found.expected_bytes


def test_what_was_not_measured_or_not_estimated_teaches_nothing() -> None:
    measured = {UPDATE: expected(PLAN, UPDATE) * 1.1, "validation": 5e10, "rollout": 0.0}
    assert set(correction_of(PLAN, measured).factors) == {UPDATE}


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.12])
def test_the_corrected_estimate_is_what_was_measured(ratio: float) -> None:
    measured = {phase.phase: phase.expected_bytes * ratio for phase in PLAN.phases if phase.phase != "rollout"}
    after = corrected(PLAN, correction_of(PLAN, measured))
    for name, peak in measured.items():
        assert expected(after, name) == pytest.approx(peak, rel=1e-6)
    assert after.phase("rollout") == PLAN.phase("rollout")


def test_what_is_exact_is_not_corrected() -> None:
    after = corrected(PLAN, correction_of(PLAN, {UPDATE: expected(PLAN, UPDATE) * 1.1})).phase(UPDATE)
    before = PLAN.phase(UPDATE)
    assert after is not None
    assert before is not None
    exact = {"weights", "optimizer", "gradients"}
    assert [part for part in after.parts if part.name in exact] == [part for part in before.parts if part.name in exact]


def test_a_measurement_of_something_else_does_not_carry_the_next_estimate_away() -> None:
    factors = correction_of(PLAN, {UPDATE: 1e15, "ref": 1.0}).factors
    assert factors == {UPDATE: 2.0, "ref": 0.5}
