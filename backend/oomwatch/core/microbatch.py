"""How a card's share of a step is cut into micro batches, and how long the responses of the largest one are.

What a phase allocates follows the tokens of its largest micro batch. The step line tells no more than the mean and the
longest response of the step: the rest follows from how lengths are spread (log-normal, as lengths of text are) and from
how many micro batches a card has. The keys are verl's (0.2 to 0.9).
"""

from collections.abc import Sequence
from math import ceil, exp, expm1, log, log1p, sqrt
from statistics import NormalDist, median

from oomwatch import wire
from oomwatch.core.peaks import GpuStep
from oomwatch.core.settings import response_cap_of
from oomwatch.plan.phasekeys import PHASES, keys_of
from oomwatch.plan.settings import ACTOR, ROLLOUT, Config

NORMAL = NormalDist()


def response_cap(steps: Sequence[GpuStep], config: Config) -> float | None:
    """How long a response may get: as configured, else as long as those that were clipped."""
    configured = response_cap_of(config)
    if configured is not None:
        return float(configured)
    return max((step.length_max_tokens for step in steps if step.clip_ratio and step.length_max_tokens), default=None)


def longer_prompts(steps: Sequence[GpuStep], config: Config) -> float:
    """By how many tokens prompts may be longer than usual: by half of what is allowed, for not all of a batch are."""
    allowed = number(config.get("data.max_prompt_length"))
    count = _sequences_of_step(config)
    usual = [
        step.tokens_total / count - step.length_mean_tokens
        for step in steps
        if count and step.tokens_total and step.length_mean_tokens
    ]
    return max(0.0, allowed - median(usual)) / 2 if usual else 0.0


def is_dynamic(phase: str, config: Config) -> bool:
    return bool(config.get(keys_of(phase).dynamic, config.get(PHASES["update_actor"].dynamic, False)))


def largest_ratio(phase: str, steps: Sequence[GpuStep], config: Config) -> float:
    """How many times the step's mean response the mean response of a card's largest micro batch is; 1 or more.

    Where the configuration does not tell, and where sequences are padded to the longest, it is as the longest response.
    """
    told = [
        (step.length_max_tokens, step.length_mean_tokens)
        for step in steps
        if step.length_max_tokens and step.length_mean_tokens
    ]
    if not told or is_dynamic(phase, config):
        return 1.0  # a dynamic batch that is not full holds all that a card has
    alone = max(1.0, median(longest / mean for longest, mean in told))
    sequences, of_step, of_card = _counts(phase, config)
    if not sequences or of_step < 2 or config.get(keys_of(phase).padding) is False:  # noqa: PLR2004 - one is the longest
        return alone
    in_one = min(sequences, of_card)
    spread = sqrt(log1p(expm1(_spread(alone, of_step) ** 2) / in_one))  # of the means of so many (Fenton-Wilkinson)
    return min(alone, exp(spread * _highest_of(ceil(of_card / in_one)) - spread * spread / 2))


def full_ratio(phase: str, step: GpuStep, config: Config) -> float:
    """How many times longer responses may get before dynamic batches are full and grow no more; 0 if they may be full.

    A card's share of the step's tokens is cut into micro batches of so many tokens. While the share is less, the batch
    grows with it. Infinite where batches are cut by number.
    """
    if not is_dynamic(phase, config):
        return float("inf")
    bound = number(config.get(keys_of(phase).tokens_max, config.get(PHASES["update_actor"].tokens_max)))
    cards = number(config.get("trainer.nnodes")) * number(config.get("trainer.n_gpus_per_node"))
    share = (step.tokens_total or 0.0) / cards if cards else 0.0
    return bound / share if 0 < share < bound else 0.0


def number(value: wire.ConfigValue | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _counts(phase: str, config: Config) -> tuple[float, float, float]:
    """Sequences of a micro batch, of a step, and of a card's share of it; 0 where not told."""
    of_one = next((value for key in keys_of(phase).sequences if (value := number(config.get(key)))), 0.0)
    of_step = _sequences_of_step(config)
    cards = number(config.get("trainer.nnodes")) * number(config.get("trainer.n_gpus_per_node"))
    ranks = cards / (number(config.get(f"{ACTOR}.ulysses_sequence_parallel_size")) or 1.0)
    return of_one, of_step, of_step / ranks if ranks >= 1 else of_step


def _sequences_of_step(config: Config) -> float:
    return number(config.get("data.train_batch_size")) * number(config.get(f"{ROLLOUT}.n"))


def _spread(longest_ratio: float, count: float) -> float:
    """The deviation of the logarithms of lengths, of which the longest of so many is so many times the mean.

    That is exp(s * z - s * s / 2), so that s is the lesser root of a quadratic equation. Where responses are clipped it
    is told too low, and the largest batch with it.
    """
    z = _highest_of(count)
    return z - sqrt(max(0.0, z * z - 2 * log(longest_ratio)))


def _highest_of(count: float) -> float:
    """About where the highest of so many normal values is (G. Blom, Statistical Estimates, 1958)."""
    return NORMAL.inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0
