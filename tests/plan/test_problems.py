"""What verl would refuse, in its own words, and which values it would not."""

from tests.plan.test_batches import ACTOR, ARTICLE, ROLLOUT

from oomwatch.plan.problems import problems_of

CRITIC_MICRO = "critic.ppo_micro_batch_size_per_gpu"


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


def test_a_newer_critic_s_micro_batch_is_said_to_have_no_effect() -> None:
    critic = {**ARTICLE, "algorithm.adv_estimator": "gae", CRITIC_MICRO: 8, "critic.ppo_max_token_len_per_gpu": 65536}
    (problem,) = problems_of(critic, "0.8.0")
    assert (problem.severity, problem.check, problem.key) == ("warning", "micro_batch_not_used", CRITIC_MICRO)
    assert problem.numbers == {"other": "critic.ppo_max_token_len_per_gpu", "tokens": 65536}
    for config, version in ((critic, "0.7.1"), ({**critic, "critic.use_dynamic_bsz": True}, "0.8.0")):
        assert "micro_batch_not_used" not in {one.check for one in problems_of(config, version)}
    assert problems_of({**ARTICLE, CRITIC_MICRO: 8}, "0.8.0") == ()


def test_an_estimator_that_verl_does_not_bring_stops_older_releases_and_is_told_of_in_newer_ones() -> None:
    def told(name: str, version: str) -> list[str]:
        found = problems_of({**ARTICLE, "algorithm.adv_estimator": name}, version)
        return [one.severity for one in found if one.check == "estimator_is_known"]

    assert [told("grop", release) for release in ("0.5.0", "0.6.1", "0.9.1")] == [["error"], ["warning"], ["warning"]]
    assert [told("gpg", release) for release in ("0.4.1", "0.5.0", "0.9.1")] == [["error"], [], []]
    assert [told("gdpo", release) for release in ("0.7.0", "0.7.1")] == [["warning"], []]
