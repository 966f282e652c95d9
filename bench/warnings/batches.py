"""The sequences of one step: how long they got, and how the ranks cut them into micro batches.

Lengths are log-normal, alike within a prompt's group, and cut off at the cap. The draws of a step depend on the seed
and the step alone, so that another configuration is given the same prompts.
"""

from math import ceil, exp, log
from random import Random
from statistics import fmean
from typing import NamedTuple

from bench.warnings.settings import Batching, Settings

ALIKE = 0.6  # share of a length's deviation that its prompt's difficulty explains
SPREAD_MAX_SIGMAS = 3.5


class Lengths(NamedTuple):
    """How long responses are: the median of a step, and how far single ones are from it (of the logarithm)."""

    median: float
    spread: float


class Sequence(NamedTuple):
    prompt_tokens: int
    response_tokens: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.response_tokens


class Batch(NamedTuple):
    """One step's sequences, by data-parallel rank, in the order in which each works through them."""

    ranks: tuple[tuple[int, ...], ...]  # tokens of each sequence
    response_mean: float
    response_max: int
    clip_ratio: float
    tokens: int


def draw_batch(dice: Random, lengths: Lengths, settings: Settings, data_ranks: int) -> Batch:
    """The step's responses, dealt to the ranks."""
    sequences = _sequences(dice, lengths, settings)
    cap = settings.response_tokens_max
    responses = [one.response_tokens for one in sequences]
    dealt = _balanced if settings.balanced else _in_order
    ranks = dealt([one.tokens for one in sequences], data_ranks)
    for tokens in ranks:
        dice.shuffle(tokens)
    return Batch(
        tuple(tuple(tokens) for tokens in ranks),
        fmean(responses),
        max(responses),
        sum(tokens >= cap for tokens in responses) / len(responses),
        sum(one.tokens for one in sequences),
    )


def _sequences(dice: Random, lengths: Lengths, settings: Settings) -> list[Sequence]:
    middle, cap = log(lengths.median), settings.response_tokens_max
    own = (1 - ALIKE**2) ** 0.5
    found: list[Sequence] = []
    for _ in range(settings.prompts):
        prompt = round(settings.prompt_tokens_max * dice.uniform(0.15, 0.6))
        group = dice.gauss(0, 1)
        for _ in range(settings.responses_per_prompt):
            sigmas = max(-SPREAD_MAX_SIGMAS, min(SPREAD_MAX_SIGMAS, ALIKE * group + own * dice.gauss(0, 1)))
            found.append(Sequence(prompt, min(cap, max(8, round(exp(middle + lengths.spread * sigmas))))))
    return found


def _balanced(tokens: list[int], ranks: int) -> list[list[int]]:
    """As trainer.balance_batch: every rank has about the same number of tokens."""
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for place, one in enumerate(sorted(tokens, reverse=True)):
        row, column = divmod(place, ranks)
        dealt[column if row % 2 == 0 else ranks - 1 - column].append(one)
    return dealt


def _in_order(tokens: list[int], ranks: int) -> list[list[int]]:
    """Whole groups, as they came: the data loader sorts by topic, so one rank has the long ones."""
    tokens = sorted(tokens, reverse=True)
    each = ceil(len(tokens) / ranks)
    return [tokens[start : start + each] for start in range(0, len(tokens), each)]


def micro_batches(tokens: tuple[int, ...], how: Batching) -> list[float]:
    """Tokens that one rank holds in each of its micro batches, in order."""
    if how.tokens_max is not None:
        return [whole / how.parallel for whole in _packed(tokens, how.tokens_max * how.parallel)]
    starts = range(0, len(tokens), how.sequences)
    return [sum(tokens[start : start + how.sequences]) / how.parallel for start in starts]


def _packed(tokens: tuple[int, ...], tokens_max: int) -> list[int]:
    """Dynamic batches: as few as hold all, evenly filled."""
    count = max(1, ceil(sum(tokens) / tokens_max))
    while True:
        bins = [0] * count
        for one in sorted(tokens, reverse=True):
            bins[bins.index(min(bins))] += one
        if max(bins) <= tokens_max or count >= len(tokens):
            return bins
        count += 1


def longest_micro_batch(how: Batching, settings: Settings) -> float:
    """Tokens that one rank would hold if every sequence of a micro batch were as long as it may be."""
    if how.tokens_max is not None:
        return max(how.tokens_max, settings.longest / how.parallel)
    return how.sequences * settings.longest / how.parallel
