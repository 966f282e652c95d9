"""What verl would refuse, in its own words, and which values it would not."""

from tests.plan.test_batches import ACTOR, ARTICLE, ROLLOUT

from oomwatch.plan.problems import problems_of


def test_the_articles_worked_example_has_no_problem() -> None:
    assert problems_of(ARTICLE) == ()


def test_a_micro_batch_that_does_not_divide_is_told_with_the_nearest_that_do() -> None:
    (problem,) = problems_of({**ARTICLE, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 7}, "0.7.1")
    assert (
        problem.verl_says == "normalized ppo_mini_batch_size 120 should be divisible by ppo_micro_batch_size_per_gpu 7"
    )
    assert (problem.valid, problem.suggestion) == ((6, 8), f"{ACTOR}.ppo_micro_batch_size_per_gpu=6")


def test_gpus_that_do_not_make_whole_engines_are_told_with_the_nearest_sizes_that_do() -> None:
    (problem,) = problems_of({**ARTICLE, f"{ROLLOUT}.tensor_model_parallel_size": 4})
    assert (problem.check, problem.valid) == ("engines_fit", (3, 6))
