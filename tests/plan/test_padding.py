"""The newest trainer fills a step up: the numbers say so, and so does a warning."""

import pytest

from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.problem import Problem
from oomwatch.plan.problems import problems_of
from oomwatch.plan.settings import ACTOR, REF, ROLLOUT, Config

PROMPTS = "data.train_batch_size"
UNEVEN: Config = {
    "algorithm.adv_estimator": "grpo",
    PROMPTS: 250,
    f"{ACTOR}.ppo_mini_batch_size": 64,
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": 4,
    f"{ACTOR}.use_kl_loss": True,
    f"{ROLLOUT}.name": "vllm",
    f"{ROLLOUT}.n": 8,
    f"{ROLLOUT}.tensor_model_parallel_size": 2,
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8,
    f"{REF}.log_prob_micro_batch_size_per_gpu": 8,
    "trainer.n_gpus_per_node": 8,
    "trainer.nnodes": 1,
}


def warnings(config: Config, version: str) -> list[Problem]:
    return [one for one in problems_of(config, version) if one.check == "step_is_filled"]


def formula(batches: Batches, name: str) -> str:
    return next(line.formula for line in batches.working if line.name == name)


def test_a_step_that_is_filled_up_is_told_with_its_numbers() -> None:
    (warning,) = warnings(UNEVEN, "0.9.1")
    assert (warning.severity, warning.key, warning.suggestion) == ("warning", PROMPTS, f"{PROMPTS}=256")
    assert warning.numbers == {"prompts": 250, "n": 8, "sequences": 2000, "filled": 2048, "multiple": 512}
    assert warning.valid == (256, 192)


def test_a_gpu_works_on_what_it_was_filled_up_with() -> None:
    found = batches_of(UNEVEN, "0.9.1")
    assert (found.sequences_per_step, found.sequences_with_padding, found.sequences_per_gpu) == (2000, 2048, 256)
    assert found.mini_batches_per_step == 4
    passes = found.phase("ref")
    assert passes is not None
    assert (passes.sequences_per_gpu, passes.micro_batches) == (256, 32)


def test_a_critics_mini_batch_is_filled_too() -> None:
    critic: Config = {"algorithm.adv_estimator": "gae", "critic.ppo_mini_batch_size": 96}
    found = batches_of({**UNEVEN, **critic}, "0.9.1")
    assert found.sequences_with_padding == 384 * 8
    assert found.mini_batches_per_step == 6


@pytest.mark.parametrize(
    ("changes", "version"), [({PROMPTS: 256}, "0.9.1"), ({}, "0.8"), ({"trainer.use_v1": False}, "0.9.1")]
)
def test_nothing_is_filled_where_it_is_even_or_the_trainer_is_another(changes: Config, version: str) -> None:
    assert warnings({**UNEVEN, **changes}, version) == []
    assert batches_of({**UNEVEN, **changes}, version).sequences_with_padding is None


def test_engines_that_cannot_be_dealt_the_same_are_told_the_least_and_the_most() -> None:
    found = batches_of(UNEVEN, "0.9.1")
    assert (found.prompts_per_replica, formula(found, "prompts_per_replica")) == (63, "250 / 4 = 62…63")
    assert (found.sequences_per_replica, formula(found, "sequences_per_replica")) == (504, "63 × 8")
    even = batches_of({**UNEVEN, PROMPTS: 256}, "0.9.1")
    assert (even.prompts_per_replica, formula(even, "prompts_per_replica")) == (64, "256 / 4")
