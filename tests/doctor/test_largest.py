"""What is set now and fits is never called too much."""

import pytest
from tests.doctor.cases import ACTOR, REF, ROLLOUT, report

from oomwatch.doctor.result import Largest

UNEVEN = ("data.train_batch_size=250", "trainer.n_gpus_per_node=8", f"{ACTOR}.ppo_mini_batch_size=64", f"{ROLLOUT}.n=8")
LOG_PROB = f"{REF}.log_prob_micro_batch_size_per_gpu"


def largest(key: str, *overrides: str) -> Largest:
    return next(one for one in report(*overrides).largest if one.key == key)


@pytest.mark.parametrize("now", [1, 2, 4])
def test_a_step_that_verl_fills_up_has_a_largest_pass(now: int) -> None:
    found = largest(LOG_PROB, *UNEVEN, f"{LOG_PROB}={now}")
    assert (found.now, found.value) == (now, 8)


def test_an_engines_share_between_two_choices_is_one_itself() -> None:
    share = f"{ROLLOUT}.gpu_memory_utilization"
    now = largest(share, f"{share}=0.5").value
    assert isinstance(now, float)
    finer = round(now + 0.01, 2)
    fits = [one.verdict for one in report(f"{share}={finer}").memory if one.phase == "rollout"] == ["fits"]
    assert fits
    assert largest(share, f"{share}={finer}").value == finer
