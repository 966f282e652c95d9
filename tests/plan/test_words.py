"""Every line of the arithmetic and every problem has words with the numbers that they name, and no others are there."""

import functools

from tests.plan.grid import cases
from tests.plan.test_batches import ACTOR, ARTICLE, ROLLOUT

from oomwatch import catalogue
from oomwatch.plan import verlkeys
from oomwatch.plan.batches import batches_of
from oomwatch.plan.problem import Problem
from oomwatch.plan.problems import problems_of
from oomwatch.plan.settings import Config

LINE, CHECK = "plan.line.", "plan.check."


def _keys(space: str) -> set[str]:
    return {key for key in catalogue.entries() if key.startswith(space)}


@functools.cache
def _problems() -> list[Problem]:
    """Of many configurations, and of kinds that the grid seldom draws."""
    releases = verlkeys.releases()[2:]
    found = [one for release in releases for case in cases(release, 100) for one in problems_of(case.settings, release)]
    deprecated = {key: value for key, value in ARTICLE.items() if "micro_batch" not in key}
    deprecated[f"{ROLLOUT}.log_prob_micro_batch_size"] = 48
    cold = {**ARTICLE, f"{ROLLOUT}.temperature": 0, f"{ROLLOUT}.val_kwargs.do_sample": True}
    text = {**ARTICLE, "data.max_response_length": "x", f"{ACTOR}.optim.lr": "x", f"{ACTOR}.use_kl_loss": "x"}
    text[f"{ROLLOUT}.gpu_memory_utilization"] = 7
    none = {**ARTICLE, f"{ACTOR}.ppo_mini_batch_size": 0}
    unheard = {**ARTICLE, "algorithm.adv_estimator": "grop"}
    return [*found, *(one for config in (deprecated, cold, none, text, unheard) for one in problems_of(config))]


def test_every_line_has_words_and_no_others_are_there() -> None:
    with_critic = {**ARTICLE, "algorithm.adv_estimator": "gae"}
    others: list[Config] = [{f"{ACTOR}.strategy": "megatron"}, {"data.train_batch_size": 61}]
    lines = [*batches_of(with_critic).working]
    lines += [line for other in others for line in batches_of({**ARTICLE, **other}).working]
    assert {LINE + line.name for line in lines} == _keys(LINE)


def test_every_problem_has_words_and_no_others_are_there() -> None:
    found = _problems()
    assert {CHECK + problem.check for problem in found} == _keys(CHECK)
    for problem in found:
        for language in ("en", "zh"):
            assert catalogue.placeholders(catalogue.entries()[CHECK + problem.check][language]) <= set(problem.numbers)


def test_every_suggested_override_names_a_setting() -> None:
    for problem in _problems():
        if problem.suggestion is not None:
            name = problem.suggestion.lstrip("~").split("=")[0]
            assert verlkeys.having(name, "fsdp") or verlkeys.having(name, "megatron"), name
