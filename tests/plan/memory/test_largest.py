"""The largest settings that still fit."""

from tests.plan.memory.test_verl import ACTOR, GRPO, ROLLOUT

from oomwatch.plan.cards import card_named
from oomwatch.plan.memory import Largest, estimate_of, largest_that_fits
from oomwatch.plan.models import shape_named
from oomwatch.plan.settings import Config

SHAPE, CARD = shape_named("Qwen2.5-7B"), card_named("H100")
TOKENS, SHARE = f"{ACTOR}.ppo_max_token_len_per_gpu", f"{ROLLOUT}.gpu_memory_utilization"


def largest(config: Config) -> dict[str, Largest]:
    assert SHAPE is not None
    assert CARD is not None
    return {one.key: one for one in largest_that_fits(config, SHAPE, CARD, version="0.8")}


def verdict(config: Config, phase: str) -> str:
    assert SHAPE is not None
    assert CARD is not None
    found = estimate_of(config, SHAPE, CARD, version="0.8").phase(phase)
    assert found is not None
    return found.verdict


def test_the_largest_token_limit_fits_and_the_next_does_not() -> None:
    found = largest(GRPO)[TOKENS]
    assert found.now == 8192
    assert found.fits is not None
    assert found.at_most is not None
    assert found.fits < found.at_most
    assert verdict({**GRPO, TOKENS: int(found.fits)}, "update_actor") == "fits"
    assert verdict({**GRPO, TOKENS: int(found.fits) + 256}, "update_actor") == "tight"
    assert verdict({**GRPO, TOKENS: int(found.at_most) + 256}, "update_actor") == "will_not_fit"


def test_the_engines_share_is_bounded_from_both_sides() -> None:
    found = largest(GRPO)[SHARE]
    assert found.fits is not None
    assert verdict({**GRPO, SHARE: found.fits}, "rollout") == "fits"
    assert verdict({**GRPO, SHARE: 0.05}, "rollout") == "will_not_fit"
    assert verdict({**GRPO, SHARE: 0.95}, "rollout") == "will_not_fit"


def test_a_micro_batch_is_offered_only_where_it_divides() -> None:
    fixed = {**GRPO, f"{ACTOR}.use_dynamic_bsz": False, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 1}
    fixed |= {f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 1}
    found = largest(fixed)[f"{ACTOR}.ppo_micro_batch_size_per_gpu"]
    assert found.fits is not None
    assert 64 * 8 // 8 % found.fits == 0


def test_no_response_is_offered_that_a_dynamic_batch_could_not_hold() -> None:
    found = largest(GRPO)["data.max_response_length"]
    assert found.at_most is not None
    assert found.at_most + 1024 <= 8192


def test_where_nothing_fits_nothing_is_offered() -> None:
    assert SHAPE is not None
    found = {one.key: one for one in largest_that_fits(GRPO, SHAPE, 12 * 2**30, version="0.8")}
    assert (found[TOKENS].fits, found[TOKENS].at_most) == (None, None)
