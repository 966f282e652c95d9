"""Every line of the arithmetic has words in the catalogue, and none is there for a line that no configuration gives."""

from tests.plan.test_batches import ACTOR, ARTICLE

from oomwatch import catalogue
from oomwatch.plan.batches import batches_of

LINE = "plan.line."


def test_every_line_has_words_and_no_others_are_there() -> None:
    with_critic = {**ARTICLE, "algorithm.adv_estimator": "gae"}
    lines = [*batches_of(with_critic).working, *batches_of({**ARTICLE, f"{ACTOR}.strategy": "megatron"}).working]
    assert {LINE + line.name for line in lines} == {key for key in catalogue.entries() if key.startswith(LINE)}
