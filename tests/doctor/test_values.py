"""What the report says of values that nothing can be estimated with."""

import pytest
from tests.doctor.cases import ACTOR, ROLLOUT, given, reading, report

from oomwatch.doctor.report import make_report

WRONG = [
    "data.max_response_length=x",
    f"{ROLLOUT}.tensor_model_parallel_size=true",
    f"{ACTOR}.ppo_mini_batch_size=null",
    "trainer.n_gpus_per_node=8.5",
    f"{ROLLOUT}.gpu_memory_utilization=7",
    f"{ROLLOUT}.gpu_memory_utilization=nan",
    f"{ROLLOUT}.n=0",
    "data.max_prompt_length=-1",
]


@pytest.mark.parametrize("override", WRONG)
def test_a_wrong_value_is_refused_by_name_and_nothing_is_estimated_with_it(override: str) -> None:
    made = report(override, card="H200")
    key, _, value = override.partition("=")
    assert (made.verdict, made.memory, made.largest, made.host) == ("refused", (), (), None)
    errors = {one.key: one.message for one in made.problems if one.severity == "error"}
    assert value in errors[key]
    assert made.headline.startswith(f"Would be refused at start: {key}=")
    assert "Fits" not in made.headline
    assert [one.message for one in made.missing] == [f"Memory is not estimated with the value of {key}"]


def test_what_mends_a_wrong_value_is_in_the_headline_with_what_comes_of_it() -> None:
    made = report(f"{ROLLOUT}.gpu_memory_utilization=50", card="H200")
    assert f"with {ROLLOUT}.gpu_memory_utilization=0.5 it fits" in made.headline
    assert made.plan is not None
    assert made.plan.enough


def test_null_over_a_default_is_not_taken_for_the_default() -> None:
    made = report(f"{ROLLOUT}.n=null")
    assert made.derived["sequences_per_step"] is None


def test_a_switch_that_is_no_switch_leaves_open_whether_it_fits() -> None:
    made = report(f"{ACTOR}.use_kl_loss=1", card="H200")
    assert made.verdict == "unknown"
    assert "Fits" not in made.headline
    assert f"{ACTOR}.use_kl_loss" in made.headline


def test_a_count_of_nothing_is_said_as_it_was_written_in_either_language() -> None:
    case = reading(f"{ROLLOUT}.n=0"), given("H200")
    assert f"{ROLLOUT}.n=0 does not work: it must be 1 or more" in make_report(*case).headline
    assert f"{ROLLOUT}.n=0 无效：至少为 1" in make_report(*case, "zh").headline
