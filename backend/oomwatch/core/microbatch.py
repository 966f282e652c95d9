"""How a card's share of a step is cut into micro batches, and how long the responses of the largest one are.

What a phase allocates follows the tokens of its largest micro batch. The step line tells no more than the mean and the
longest response of the step: the rest follows from how lengths are spread (log-normal, as lengths of text are) and from
how many micro batches a card has. How many sequences or tokens one holds is verl's arithmetic (plan/batches.py).
"""

from collections.abc import Sequence
from math import ceil, exp, expm1, log, log1p, sqrt
from statistics import NormalDist, median

from oomwatch import wire
from oomwatch.core.peaks import GpuStep
from oomwatch.core.settings import response_cap_of
from oomwatch.plan.batches import CRITICS, Batches, PhaseBatches
from oomwatch.plan.phasekeys import keys_of
from oomwatch.plan.settings import ROLLOUT, Config

NORMAL = NormalDist()
# Without these nobody knows how large a step is: verl's own defaults for them are hardly any run's.
STEP_KEYS = ("data.train_batch_size", f"{ROLLOUT}.n")
CARDS_KEY = "trainer.n_gpus_per_node"


def response_cap(steps: Sequence[GpuStep], config: Config) -> float | None:
    """How long a response may get: as configured, else as long as those that were clipped."""
    configured = response_cap_of(config)
    if configured is not None:
        return float(configured)
    return max((step.length_max_tokens for step in steps if step.clip_ratio and step.length_max_tokens), default=None)


def longer_prompts(steps: Sequence[GpuStep], config: Config, batches: Batches) -> float:
    """By how many tokens prompts may be longer than usual: by half of what is allowed, for not all of a batch are."""
    allowed = number(config.get("data.max_prompt_length"))
    count = _told(batches, "sequences_per_step", STEP_KEYS)
    usual = [
        step.tokens_total / count - step.length_mean_tokens
        for step in steps
        if count and step.tokens_total and step.length_mean_tokens
    ]
    return max(0.0, allowed - median(usual)) / 2 if usual else 0.0


def largest_ratio(phase: str, steps: Sequence[GpuStep], config: Config, batches: Batches) -> float:
    """How many times the step's mean response the mean response of a card's largest micro batch is; 1 or more.

    Where the configuration does not tell, and where sequences are padded to the longest, it is as the longest response.
    """
    told = [
        (step.length_max_tokens, step.length_mean_tokens)
        for step in steps
        if step.length_max_tokens and step.length_mean_tokens
    ]
    if not told or _passes(batches, phase).is_dynamic:
        return 1.0  # a dynamic batch that is not full holds all that a card has
    alone = max(1.0, median(longest / mean for longest, mean in told))
    sequences, of_step, of_card = _counts(phase, batches)
    if not sequences or of_step < 2 or config.get(keys_of(phase).padding) is False:  # noqa: PLR2004 - one is the longest
        return alone
    in_one = min(sequences, of_card)
    spread = sqrt(log1p(expm1(_spread(alone, of_step) ** 2) / in_one))  # of the means of so many (Fenton-Wilkinson)
    return min(alone, exp(spread * _highest_of(ceil(of_card / in_one)) - spread * spread / 2))


def full_ratio(phase: str, step: GpuStep, batches: Batches) -> float:
    """How many times longer responses may get before dynamic batches are full and grow no more; 0 if they may be full.

    A card's share of the step's tokens is cut into micro batches of so many tokens. While the share is less, the batch
    grows with it. Infinite where batches are cut by number.
    """
    passes = _passes(batches, phase)
    if not passes.is_dynamic:
        return float("inf")
    bound, cards = passes.tokens_per_micro_batch or 0, _told(batches, "gpus", (CARDS_KEY,))
    if not bound or not cards:
        return 0.0
    ranks = cards / (batches.model_parallel_size or batches.sequence_parallel_size or 1)
    share = (step.tokens_total or 0.0) / (ranks * passes.shares)
    return bound / share if 0 < share < bound else 0.0


def number(value: wire.ConfigValue | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _passes(batches: Batches, phase: str) -> PhaseBatches:
    """Of a phase that is not known, the update's: it is the one that runs out of memory most often."""
    return batches.phase(phase) or batches.phases[-1]  # which is the actor's


def _counts(phase: str, batches: Batches) -> tuple[float, float, float]:
    """Sequences of a micro batch, of a step, and of a rank's share of it; 0 where not told."""
    of_one = max(0.0, float(_passes(batches, phase).micro_batch_size_per_gpu or 0))
    of_step = _told(batches, "sequences_per_step", STEP_KEYS)
    critic = batches.phase("values") if phase in CRITICS else None
    of_card = _told(batches, "sequences_per_gpu", (CARDS_KEY,))
    if critic is not None and of_card:
        of_card = max(0.0, float(critic.sequences_per_gpu or 0))
    if batches.sequences_with_padding:  # those that fill a step up are of nothing but padding: none is the longest
        of_card *= of_step / batches.sequences_with_padding
    return of_one, of_step, of_card or of_step


def _told(batches: Batches, name: str, by: tuple[str, ...]) -> float:
    """A number that rests on what these settings were told to be; 0 where it rests on verl's defaults for them."""
    line = next((one for one in batches.working if one.name == name and one.phase is None), None)
    if line is None or line.value is None or any(key in line.assumed for key in by):
        return 0.0
    return max(0.0, float(line.value))


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
